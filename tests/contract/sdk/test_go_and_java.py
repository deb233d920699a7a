"""The Go and Java SDKs: generated, compiled, and exercised by their own tests against the service."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

OPENAPI = Path(__file__).parents[3] / "openapi"
MAVEN = ["mvn", "--quiet", "--batch-mode"]


@pytest.fixture(scope="module")
def go_sdk(tmp_path_factory) -> Path:
    return generated("go", "go", tmp_path_factory.mktemp("go"))


@pytest.fixture(scope="module")
def java_sdk(tmp_path_factory) -> Path:
    return generated("java", "mvn", tmp_path_factory.mktemp("java"))


@pytest.mark.chaos
def test_go_sdk_passes_its_tests(go_sdk, service_url):
    run(["go", "vet", "./..."], go_sdk)
    run(["go", "test", "-race", "./..."], go_sdk, MILLSTREAM_URL=service_url)


@pytest.mark.chaos
def test_first_program_in_go_runs(go_sdk, service_url):
    printed = run(["go", "run", "./examples/first"], go_sdk, MILLSTREAM_URL=service_url)

    assert printed == 'shipped 7\n0 ann {"page":"/"}\n'


@pytest.mark.chaos
def test_java_sdk_passes_its_tests(java_sdk, service_url):
    run([*MAVEN, "test"], java_sdk, MILLSTREAM_URL=service_url)


@pytest.mark.chaos
def test_first_program_in_java_runs(java_sdk, service_url):
    run([*MAVEN, "dependency:build-classpath", "-Dmdep.outputFile=target/classpath"], java_sdk)
    classes = f"target/classes:{(java_sdk / 'target' / 'classpath').read_text()}"
    program = ["java", "-cp", classes, "examples/First.java"]

    printed = run(program, java_sdk, MILLSTREAM_URL=service_url)

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
