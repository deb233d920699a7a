"""Clients in other languages are generated from the OpenAPI document and compiled."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

GENERATE = Path(__file__).parents[3] / "openapi" / "generate.py"


@pytest.mark.chaos
@pytest.mark.parametrize(("language", "compiler"), [("go", "go"), ("java", "mvn")])
def test_generated_client_compiles(language, compiler, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not here")

    done = subprocess.run(
        [sys.executable, GENERATE, language, tmp_path / "client"],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
