"""The Go SDK: generated, compiled, and exercised by its own tests against the service."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

OPENAPI = Path(__file__).parents[3] / "openapi"


@pytest.fixture(scope="module")
def go_sdk(tmp_path_factory) -> Path:
    return generated("go", "go", tmp_path_factory.mktemp("go"))


@pytest.mark.chaos
def test_go_sdk_passes_its_tests(go_sdk, service_url):
    run(["go", "vet", "./..."], go_sdk)
    run(["go", "test", "-race", "./..."], go_sdk, MILLSTREAM_URL=service_url)


@pytest.mark.chaos
def test_first_program_in_go_runs(go_sdk, service_url):
    printed = run(["go", "run", "./examples/first"], go_sdk, MILLSTREAM_URL=service_url)

    assert printed == 'shipped 7\n0 ann {"page":"/"}\n'


def generated(language: str, compiler: str, folder: Path) -> Path:
    """Return a copy of an SDK with its generated core, compiled."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not here")
    sdk = folder / "sdk"
    ignored = shutil.ignore_patterns("core", "target")
    shutil.copytree(OPENAPI / "sdk" / language, sdk, ignore=ignored)
    run([sys.executable, OPENAPI / "generate.py", language, sdk], OPENAPI)
    return sdk


def run(command: list[Any], folder: Path, **environment: str) -> str:
    """Return the output of a command that succeeds."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
