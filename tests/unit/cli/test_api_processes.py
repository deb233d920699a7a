"""Number of API processes of `up` and `serve`."""

import os

import pytest

from api.cli.up import programs, up
from api.config.settings import read_settings
from storage.domain import limits

GIB = 1 << 30


@pytest.fixture
def machine(monkeypatch):
    def with_cores(cores: int, memory_bytes: int = 64 * GIB):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
        monkeypatch.setattr(programs, "granted_bytes", lambda: memory_bytes)

    return with_cores


@pytest.mark.parametrize(
    ("cores", "expected"), [(1, 1), (2, 1), (3, 1), (4, 2), (6, 4), (10, 8), (16, 8)]
)
def test_default_leaves_cores_to_the_stores(machine, cores, expected):
    machine(cores)

    assert programs.api_process_count(read_settings()) == expected


@pytest.mark.parametrize(("memory_bytes", "expected"), [(GIB // 2, 1), (3 * GIB, 3), (8 * GIB, 8)])
def test_default_is_bounded_by_memory(machine, memory_bytes, expected):
    machine(16, memory_bytes)

    assert programs.api_process_count(read_settings()) == expected


@pytest.mark.parametrize("workers", [1, 64])
def test_explicit_number_always_wins(machine, workers):
    machine(4, GIB)

    assert programs.api_process_count(read_settings(workers=workers)) == workers


@pytest.mark.parametrize(
    ("count", "cores", "line"),
    [
        (1, 1, "1 API process on 1 core"),
        (1, 2, "1 API process on 2 cores"),
        (2, 4, "2 API processes on 4 cores"),
    ],
)
def test_start_names_processes_and_cores(count, cores, line):
    assert up._api_processes(count, cores) == line


def test_default_stays_within_connections_of_private_postgres():
    """Beside the API run the background process, the worker and commands."""
    from storage.embedded.postgres import POSTGRES_CONNECTIONS_MAX
    from storage.settings import StorageSettings

    each = StorageSettings.model_fields["postgres_connections_max"].default

    assert (limits.API_PROCESSES_DEFAULT_MAX + 3) * each <= POSTGRES_CONNECTIONS_MAX
