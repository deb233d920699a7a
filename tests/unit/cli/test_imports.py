"""Modules that a command loads, of which the time of a command mainly consists."""

import os
import subprocess
import sys

import pytest

HEAVY = {
    "alembic",
    "asyncio",
    "fastapi",
    "httpx",
    "importlib.metadata",
    "millstream_client",
    "msgspec",
    "prometheus_client",
    "psycopg",
    "pyarrow",
    "pydantic",
    "pydantic_settings",
    "pygments",
    "redis",
    "rich",
    "sqlalchemy",
    "ssl",
    "structlog",
    "tomlkit",
    "uvicorn",
    "websockets",
    "yaml",
}
OF_A_CALL = {
    "asyncio",
    "httpx",
    "importlib.metadata",
    "millstream_client",
    "msgspec",
    "ssl",
}
"""The client of a service, and what it is made of."""
SCRIPT = """
import sys
from api.cli.main import run
sys.argv[0] = "millstream"
try:
    run(sys.argv[1:])
except SystemExit:  # completion ends this way
    pass
print("modules", *sys.modules, file=sys.stderr)
"""


def loaded(*words: str, **environment: str) -> tuple[set[str], str]:
    """The heavy modules that a command loads, and its output."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    *_, modules = done.stderr.strip().splitlines()
    assert modules.startswith("modules "), done.stderr
    return HEAVY & set(modules.split()), done.stdout


@pytest.mark.parametrize("words", [["--help"], ["queue", "--help"], ["key", "create", "--help"]])
def test_help_loads_no_heavy_module(words):
    modules, output = loaded(*words)

    assert output.startswith("Usage:")
    assert modules == set()


def test_version_option_loads_no_library():
    modules, output = loaded("--version")

    assert output == loaded("version")[1]
    assert modules == {"importlib.metadata"}


def test_completion_loads_no_heavy_module():
    modules, completed = loaded(
        _MILLSTREAM_COMPLETE="complete_bash", COMP_WORDS="millstream queu", COMP_CWORD="1"
    )

    assert completed.split() == ["queue"]
    assert modules == set()


def test_call_loads_only_the_client():
    modules, _ = loaded("queue", "ls", "--url", "http://127.0.0.1:9")

    assert modules <= OF_A_CALL


@pytest.mark.parametrize("words", [["profile", "ls"], ["ui", "-q"], ["config", "path"]])
def test_local_command_does_not_load_the_client(words):
    modules, _ = loaded(*words)

    assert not modules & {"httpx", "millstream_client"}
