"""Liveness and readiness checks for supervisors and load balancers, without credentials."""

import asyncio
import time
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from api.native.examples import Example
from storage.operations.health import AWAY, HealthChecks

LIVE_PATH = "/livez"
READY_PATH = "/readyz"
PATHS = frozenset({LIVE_PATH, READY_PATH, "/healthz"})

CHECK_SECONDS_MAX = 1.0
CACHE_SECONDS = 1.0

router = APIRouter(tags=["health"])


def is_public(_: str, path: str) -> bool:
    """Return whether a request is a check: a supervisor has no credentials."""
    return path in PATHS


class LiveOut(BaseModel):
    """Liveness of the process."""

    status: str


class ReadyOut(BaseModel):
    """`ok`, or `fail` with the result of each check."""

    status: str
    checks: dict[str, str]


class Readiness:
    """Readiness checks of the stores, run at most once per second."""

    def __init__(self, health: HealthChecks) -> None:
        self._health = health
        self._lock = asyncio.Lock()
        self._checks: dict[str, str] = {}
        self._checked_at = float("-inf")

    async def checks(self) -> dict[str, str]:
        """Return each check's name with 'ok' or its error."""
        async with self._lock:
            if time.monotonic() - self._checked_at >= CACHE_SECONDS:
                self._checks = await self._run_checks()
                self._checked_at = time.monotonic()
            return self._checks

    async def _run_checks(self) -> dict[str, str]:
        try:
            return await asyncio.wait_for(self._health.check(), CHECK_SECONDS_MAX)
        except TimeoutError:
            return {"storage": f"no response within {CHECK_SECONDS_MAX:g} s"}


def readiness_of(request: Request) -> Readiness:
    """Return the readiness checks of this process."""
    readiness: Readiness = request.app.state.readiness
    return readiness


@router.get(LIVE_PATH)
@router.get("/healthz", include_in_schema=False)
async def check_live() -> LiveOut:
    """Liveness check."""
    return LiveOut(status="ok")


@router.get(
    READY_PATH,
    response_model=ReadyOut,
    responses={503: {"model": ReadyOut, "description": "Not ready"}},
)
async def check_ready(
    readiness: Annotated[Readiness, Depends(readiness_of)],
) -> JSONResponse:
    """Readiness check: the stores respond and have the right version."""
    checks = await readiness.checks()
    ready = all(result in ("ok", AWAY) for result in checks.values())
    return JSONResponse(
        {"status": "ok" if ready else "fail", "checks": checks},
        status_code=200 if ready else 503,
        headers={} if ready else {"retry-after": "1"},
    )


# Examples of the OpenAPI document

EXAMPLES = {
    "check_live": Example("/livez", answer={"status": "ok"}),
    "check_ready": Example(
        "/readyz",
        answer={"status": "ok", "checks": {"redis": "ok", "postgres": "ok", "migrations": "ok"}},
    ),
}
