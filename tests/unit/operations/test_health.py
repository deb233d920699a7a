"""Readiness checks, without stores."""

import asyncio

import pytest

from api.rest.routes import health
from api.rest.routes.health import Readiness


class Checks:
    """Health checks that return the given result and count their calls."""

    def __init__(self, answer: dict[str, str], seconds: float = 0) -> None:
        self._answer = answer
        self._seconds = seconds
        self.asked = 0

    async def check(self) -> dict[str, str]:
        self.asked += 1
        await asyncio.sleep(self._seconds)
        return self._answer


def readiness(checks: Checks) -> Readiness:
    return Readiness(checks)  # type: ignore[arg-type]  # only `check` is asked


async def test_concurrent_requests_share_one_check():
    checks = Checks({"redis": "ok"}, seconds=0.01)
    shared = readiness(checks)

    answers = await asyncio.gather(*(shared.checks() for _ in range(10)))

    assert answers == [{"redis": "ok"}] * 10
    assert checks.asked == 1


async def test_check_is_repeated_when_result_has_expired(monkeypatch):
    monkeypatch.setattr(health, "CACHE_SECONDS", 0)
    checks = Checks({"redis": "ok"})
    fresh = readiness(checks)

    await fresh.checks()
    await fresh.checks()

    assert checks.asked == 2


async def test_hanging_check_is_a_failure(monkeypatch):
    monkeypatch.setattr(health, "CHECK_SECONDS_MAX", 0.01)

    [value] = (await readiness(Checks({}, seconds=60)).checks()).values()

    assert value.startswith("no response")


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/healthz"])
def test_health_endpoints_need_no_credentials(path):
    assert path in health.PATHS
