"""Selection of the store for a run, and the error when no Redis is installed."""

import argparse
from pathlib import Path

import pytest

from tests.redis_server import MISSING, UNAVAILABLE, NamedServer, add_store, store_of


def _told(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_store(parser)
    return parser.parse_args(words)


def test_run_exits_when_redis_is_not_installed(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(SystemExit) as ended:
        store_of(_told("--store", "redis"))

    assert ended.value.code == UNAVAILABLE
    assert capsys.readouterr().err == f"{MISSING}\n"


def test_bundled_store_is_the_default(monkeypatch, tmp_path):
    program = tmp_path / "redis-server"
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert store_of(_told()) is None
    assert store_of(_told("--store", "redis")) == program


def test_named_program_is_started_like_bundled_one(tmp_path):
    bundled, named = NamedServer(tmp_path, None), NamedServer(tmp_path, Path("/bin/some-server"))

    *_, program, configuration = bundled.command()

    assert named.command() == ["/bin/some-server", configuration]
    assert program.endswith("valkey-server")
