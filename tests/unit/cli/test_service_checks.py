"""Findings of `millstream doctor` about a service."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import httpx
import pytest

from api.cli.ops import service_checks
from api.cli.ops.service_checks import (
    _clock,
    _encryption,
    _key,
    _processes,
    _readiness,
    _unreachable,
)

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
URL = "https://mill.example.com"


@pytest.fixture(autouse=True)
def time(monkeypatch):
    monkeypatch.setattr(service_checks, "now", lambda: NOW)
    monkeypatch.setattr("api.cli.ops.service_checks.metadata.version", lambda _: "1.1")


@pytest.mark.parametrize(
    ("skew_s", "ok"), [(0, True), (59, True), (-59, True), (61, False), (-3600, False)]
)
def test_clock_skew_of_service_is_reported(skew_s, ok):
    date = (NOW + timedelta(seconds=skew_s)).strftime("%a, %d %b %Y %H:%M:%S GMT")

    finding = _clock(httpx.Response(200, headers={"date": date}))

    assert finding.ok is ok
    assert finding.detail.startswith(f"{abs(skew_s)} s from")


def test_response_without_date_is_a_warning():
    assert _clock(httpx.Response(200)).ok is None


@pytest.mark.parametrize(
    ("url", "ends", "ok"),
    [
        (URL, "Mar  2 12:00:00 2026 GMT", True),
        (URL, "Feb  2 12:00:00 2026 GMT", None),
        ("http://127.0.0.1:8080", None, True),
        ("http://10.0.0.1:8080", None, None),
    ],
)
def test_encryption_of_service_is_reported(url, ends, ok):
    finding = _encryption(url, {"notAfter": ends} if ends else None)

    assert finding.ok is ok


def answer(status: int, body: Any) -> httpx.Response:
    response = httpx.Response(status, json=body)
    response.elapsed = timedelta(milliseconds=7)
    return response


def test_failing_store_is_reported_by_name():
    checks = {"redis": "ok", "postgres": "no response"}

    service, postgres = _readiness(URL, answer(503, {"status": "fail", "checks": checks}))

    assert (service.ok, service.detail) == (False, f"{URL} is not ready; answered in 7 ms")
    assert (postgres.check, postgres.ok, postgres.detail) == ("postgres", False, "no response")


def test_other_service_at_address_is_reported():
    [finding] = _readiness(URL, answer(404, {"detail": "Not Found"}))

    assert finding.ok is False
    assert "is not Millstream" in finding.detail


@pytest.mark.parametrize(
    ("expires_at", "ok"),
    [(None, True), ("2026-06-01T00:00:00.000Z", True), ("2026-02-01T00:00:00.000Z", None)],
)
def test_expiry_and_permissions_of_key_are_reported(expires_at, ok):
    grants = [{"actions": ["queue:send", "queue:list"]}, {"actions": ["queue:list"]}]
    identity = {
        "name": "shop",
        "namespace": "acme",
        "all_namespaces": False,
        "expires_at": expires_at,
        "grants": grants,
    }

    finding = _key(identity)

    assert finding.ok is ok
    assert finding.detail.startswith("shop in acme")
    assert finding.detail.endswith(": queue:list, queue:send")


def processes(*roles: str, version: str = "1.1", failing: Any = ()) -> list[dict[str, Any]]:
    return [{"role": role, "version": version, "failing": list(failing)} for role in roles]


def test_missing_process_is_reported_by_role():
    findings = {each.check: each.ok for each in _processes(processes("api", "api", "deliverer"))}

    assert findings == {"version": True, "processes": True, "sweeper": False, "worker": None}


def test_other_version_of_service_is_a_warning():
    version, *_ = _processes(processes("api", version="1.2"))

    assert (version.ok, version.detail) == (None, "service 1.2; command line 1.1")


def test_object_that_a_process_cannot_serve_is_a_warning():
    failing = [{"task": "deliver", "object": "webhooks/default/a", "reason": "refused"}]

    *_, finding = _processes(processes("api", "sweeper", "deliverer", "worker", failing=failing))

    assert (finding.check, finding.ok) == ("deliver", None)
    assert finding.detail == "webhooks/default/a: refused"


@pytest.mark.parametrize(
    ("reason", "hint"),
    [
        ("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate", "--ca-file"),
        ("Connection refused", "Check the address"),
    ],
)
def test_unreachable_service_is_reported_with_remedy(reason, hint):
    assert hint in _unreachable(URL, reason).hint


def test_jobs_that_wait_for_executors_are_reported_with_the_reason():
    waiting = SimpleNamespace(waiting_for="executors", failure="millstream is 0.1 on executor a")
    other = SimpleNamespace(waiting_for="capacity", failure="")

    found = service_checks._jobs(cast(Any, [other, waiting]))

    assert found.ok is False
    assert "1 wait for executors of the Spark cluster: millstream is 0.1" in found.detail
    assert service_checks._jobs(cast(Any, [other])).ok is True


def _stats(*failures: str, lag_seconds: float = 0.4) -> dict[str, Any]:
    return {"lag_seconds": lag_seconds, "failures": list(failures)}


@pytest.mark.parametrize(
    ("stats", "found"),
    [
        ({}, []),
        ({"eu": _stats(), "us": _stats()}, [(True, "mirrors", "2 copy")]),
        ({"eu": _stats(), "us": _stats(lag_seconds=90)}, [(None, "mirror us", "90 s behind")]),
        (
            {"eu": _stats("the key was refused"), "us": _stats(lag_seconds=60)},
            [(False, "mirror eu", "the key was refused"), (None, "mirror us", "60 s behind")],
        ),
    ],
)
def test_mirrors_that_fail_or_lag_are_reported(stats, found):
    findings = service_checks._mirrors(stats)

    assert [(one.ok, one.check) for one in findings] == [(ok, check) for ok, check, _ in found]
    for finding, (_, _, detail) in zip(findings, found, strict=True):
        assert detail in finding.detail


def _view(*, stopped: bool = False, failure: str = "", sink_failure: str = "") -> dict[str, Any]:
    sink = {"sink": "queue:alerts", "pending": 3, "failure": sink_failure}
    view = {"name": "clicks", "stopped": stopped, "failure": failure}
    return {**view, "building": None, "sinks": [sink]}


@pytest.mark.parametrize(
    ("views", "found"),
    [
        ([], []),
        ([_view(), _view()], [(True, "views", "2 running")]),
        (
            [_view(stopped=True, failure="Too large."), _view()],
            [(False, "view clicks", "Too large.")],
        ),
        (
            [_view(sink_failure="It is full.")],
            [(None, "view clicks", "3 are pending: It is full.")],
        ),
    ],
)
def test_views_whose_batches_or_sinks_fail_are_reported(views, found):
    findings = service_checks._views(views)

    assert [(one.ok, one.check) for one in findings] == [(ok, check) for ok, check, _ in found]
    for finding, (_, _, detail) in zip(findings, found, strict=True):
        assert detail in finding.detail
