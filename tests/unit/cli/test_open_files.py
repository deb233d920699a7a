"""Limit of open files of a service."""

import resource

import pytest

from api.cli.up import listener

KIND = resource.RLIMIT_NOFILE
UNLIMITED = resource.RLIM_INFINITY


@pytest.fixture
def limits(monkeypatch):
    """Limits that tests set, instead of this process's."""
    now = {KIND: (1_024, 20_000)}
    monkeypatch.setattr(resource, "getrlimit", now.__getitem__)
    monkeypatch.setattr(resource, "setrlimit", now.__setitem__)
    return now


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((1_024, 20_000), (20_000, 20_000)),
        ((1_024, 1 << 20), (listener.OPEN_FILES_MAX, 1 << 20)),
        ((1_024, UNLIMITED), (listener.OPEN_FILES_MAX, UNLIMITED)),
        ((1 << 20, 1 << 20), (1 << 20, 1 << 20)),
        ((UNLIMITED, UNLIMITED), (UNLIMITED, UNLIMITED)),
    ],
)
def test_open_files_limit_is_raised_to_hard_limit(limits, before, after):
    limits[KIND] = before

    listener.raise_open_files_limit()

    assert limits[KIND] == after


def test_open_files_limit_stays_when_system_refuses(limits, monkeypatch):
    def refuse(*_):
        raise ValueError

    monkeypatch.setattr(resource, "setrlimit", refuse)

    listener.raise_open_files_limit()

    assert limits[KIND] == (1_024, 20_000)
