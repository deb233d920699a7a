"""Supported Python versions agree wherever they are stated."""

import tomllib
from pathlib import Path

from api.cli.ops.doctor import PYTHON_LAST, PYTHON_MIN

ROOT = Path(__file__).parents[2]
FIRST, LAST, NOT_YET = (
    f"3.{minor}" for minor in (PYTHON_MIN[1], PYTHON_LAST[1], PYTHON_LAST[1] + 1)
)


def test_supported_pythons_agree_with_doctor() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    makefile = (ROOT / "Makefile").read_text()

    assert project["requires-python"] == f">={FIRST},<{NOT_YET}"
    assert f"{PYTHON_MIN} <= sys.version_info < (3, {PYTHON_LAST[1] + 1})" in makefile
    assert all(f"python3.{minor}" in makefile for minor in range(PYTHON_MIN[1], PYTHON_LAST[1] + 1))


def test_documented_pythons_agree() -> None:
    for page in (
        "README.md",
        "docs/tutorials/first-ten-minutes.md",
        "deploy/install.sh",
        "api/cli/ops/doctor.py",
    ):
        assert f"Python {FIRST} to {LAST}" in (ROOT / page).read_text(), page
