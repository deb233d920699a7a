"""`deploy/install.sh`: what it asks of uv and pip, which are replaced by scripts that note their arguments."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SHA = "e8c517948eff7088a7aa07449aa8eafa4a15a8d50319de2525a6fd26622476c6"
LOCK = f"""\
py4j==0.10 \\
    --hash=sha256:{"0" * 64}
    # via pyspark
pyspark==4.3.0 \\
    --hash=sha256:{SHA}
uv==0.13.8 \\
    --hash=sha256:{"1" * 64}
"""
UV = """#!/bin/sh
echo "uv $*" >>"$NOTES"
if [ "$1" = venv ]; then mkdir -p .venv/bin && cp "$PYTHON" .venv/bin/python && cp "$PYTHON" .venv/bin/pip; fi
"""
PYTHON = """#!/bin/sh
echo "python $*" >>"$NOTES"
for last in "$@"; do
    if [ "$previous" = --wheel-dir ]; then echo built >"$last/pyspark-4.3.0-py2.py3-none-any.whl"; fi
    previous=$last
done
"""


@pytest.fixture
def clone(tmp_path):
    """A folder with the script, the locks, and a PATH on which uv and Python are replaced."""
    (tmp_path / "deploy").mkdir()
    (tmp_path / "path").mkdir()
    shutil.copy(ROOT / "deploy" / "install.sh", tmp_path / "deploy")
    for name in ("requirements.lock", "requirements-spark.lock", "requirements-dev.lock"):
        (tmp_path / name).write_text(LOCK)
    for name, text in (("uv", UV), ("python3", PYTHON)):
        (tmp_path / "path" / name).write_text(text)
        (tmp_path / "path" / name).chmod(0o755)
    return tmp_path


def install(clone: Path, *words: str, **variables: str) -> list[str]:
    """Run the script; returns the commands that it ran."""
    notes = clone / "notes"
    notes.write_text("")
    path = f"{clone / 'path'}:{os.environ['PATH']}"
    environment = {
        "PATH": path,
        "NOTES": str(notes),
        "HOME": str(clone / "home"),
        "PYTHON": str(clone / "path" / "python3"),
    }
    done = subprocess.run(
        [clone / "deploy" / "install.sh", *words],
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return notes.read_text().splitlines()


def test_runtime_is_installed_by_hash_before_this_project(clone):
    venv, lock, project = install(clone, "runtime")

    assert venv == "uv venv --quiet .venv"
    assert "--require-hashes -r requirements.lock" in lock
    assert "--no-deps --no-build-isolation -e ." in project
    assert (clone / ".venv" / ".runtime").exists()


def test_wheel_of_pyspark_is_built_once_per_user(clone):
    first = install(clone, "spark")
    shutil.rmtree(clone / ".venv")
    second = install(clone, "spark")

    [build] = [line for line in first if "pip wheel" in line]
    assert "--require-hashes" in build
    assert "--no-build-isolation" in build
    assert not [line for line in second if "pip wheel" in line]
    assert [line for line in second if f"wheels/{SHA}/pyspark-" in line]


def test_changed_wheel_of_pyspark_is_built_again(clone):
    install(clone, "spark")
    shutil.rmtree(clone / ".venv")
    [wheel] = (clone / "home").rglob("pyspark-*.whl")
    wheel.write_text("changed")

    assert [line for line in install(clone, "spark") if "pip wheel" in line]


def test_pyspark_is_installed_after_what_it_needs(clone):
    commands = install(clone, "dev")

    others = (clone / ".venv" / "others.lock").read_text()
    assert "pyspark==" not in others
    assert "py4j==" in others
    installs = [line for line in commands if " install " in line]
    assert "others.lock" in installs[0]
    assert "pyspark-4.3.0" in installs[1]
    assert {path.name for path in (clone / ".venv").glob(".[a-z]*")} == {
        ".runtime",
        ".spark",
        ".dev",
    }


def test_class_archive_follows_installation_of_spark(clone):
    assert "spark_worker.build_class_archive" in install(clone, "spark")[-1]


def test_current_installation_of_spark_is_left_alone(clone):
    install(clone, "spark")

    assert install(clone, "spark") == []


def test_pip_installs_when_uv_is_not_wanted(clone):
    (clone / ".venv" / "bin").mkdir(parents=True)
    for name in ("python", "pip"):
        shutil.copy(clone / "path" / "python3", clone / ".venv" / "bin" / name)

    commands = install(clone, "runtime", UV="no")

    assert commands[0] == "python -m pip install --quiet --require-hashes -r requirements.lock"
    assert not [line for line in commands if line.startswith("uv")]
