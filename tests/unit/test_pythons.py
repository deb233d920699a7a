"""Which Pythons it takes: said in several places, and the same in all."""

import tomllib
from pathlib import Path

from api.cli.ops.doctor import PYTHON_LAST, PYTHON_MIN

ROOT = Path(__file__).parents[2]
FIRST, LAST, NOT_YET = (
    f"3.{minor}" for minor in (PYTHON_MIN[1], PYTHON_LAST[1], PYTHON_LAST[1] + 1)
)


def test_what_it_is_installed_on_is_what_the_doctor_is_content_with() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    makefile = (ROOT / "Makefile").read_text()

    assert project["requires-python"] == f">={FIRST},<{NOT_YET}"
    assert f"{PYTHON_MIN} <= sys.version_info < (3, {PYTHON_LAST[1] + 1})" in makefile
    assert all(f"python3.{minor}" in makefile for minor in range(PYTHON_MIN[1], PYTHON_LAST[1] + 1))


def test_what_is_told_to_readers_is_the_same() -> None:
    for page in (
        "README.md",
        "docs/tutorials/first-ten-minutes.md",
        "Makefile",
        "api/cli/ops/doctor.py",
    ):
        assert f"Python {FIRST} to {LAST}" in (ROOT / page).read_text(), page
