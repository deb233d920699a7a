"""The memory limit of the store, and findings about it."""

import pytest

from api.cli.up.local_stores import memory_bytes
from api.config.settings import Settings
from api.native.problems import problem
from storage.domain import limits
from storage.domain.errors import BacklogFull
from storage.operations.hot_store_checks import memory_finding


@pytest.mark.parametrize(("said", "expected"), [(0, 0), (512, 512 * limits.MIB)])
def test_embedded_valkey_has_configured_memory(said, expected):
    assert memory_bytes(Settings(memory_mb=said)) == expected


def test_embedded_valkey_memory_defaults_to_share_of_machine():
    assert limits.MEMORY_BYTES_MIN <= memory_bytes(Settings()) < 2**50


@pytest.mark.parametrize(
    ("used", "most", "ok", "said"),
    [
        (10 << 20, 0, None, "the memory guard is disabled"),
        (10 << 20, 100 << 20, True, "10 of 100 MiB"),
        (84 << 20, 100 << 20, None, "84 of 100 MiB"),
    ],
)
def test_doctor_reports_memory_guard(used, most, ok, said):
    actual_memory_finding = memory_finding(used, most)

    assert actual_memory_finding.ok is ok
    assert said in actual_memory_finding.detail


def test_full_backlog_is_429_with_retry_after():
    returned_problem = problem(
        BacklogFull(retry_after_seconds=5), instance="/v1/queues/a", request_id="r"
    )

    assert returned_problem.status == 429
    assert (b"retry-after", b"5") in returned_problem.headers
    assert b"#temporary-reduced-capacity" in returned_problem.body
