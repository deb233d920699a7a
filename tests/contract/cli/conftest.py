"""The service of the command line's tests, and objects in it."""

from pathlib import Path

import pytest

from tests.cli_commands import millstream


@pytest.fixture
def at_the_service(service_url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Configure the service by environment, without profiles."""
    monkeypatch.setenv("MILLSTREAM_URL", service_url)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


@pytest.fixture
def orders(at_the_service: None, name: str) -> str:
    """The name of a new queue."""
    assert millstream("queue", "create", name).code == 0
    return name


@pytest.fixture
def clicks(at_the_service: None, name: str) -> str:
    """The name of a new stream of two shards."""
    assert millstream("stream", "create", name, "--shards", "2").code == 0
    return name
