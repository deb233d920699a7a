"""Packages and scripts of JavaScript, for the tests that are written in it."""

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any


def install(folder: Path) -> None:
    """The packages of a folder's lock: installed where the lock is another than it was."""
    digest = hashlib.sha256((folder / "package-lock.json").read_bytes()).hexdigest()
    installed = folder / "node_modules" / ".installed"  # goes with them, so it never outlives them
    if not installed.exists() or installed.read_text() != digest:
        run(folder, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", seconds_max=100)
        installed.write_text(digest)


def run(folder: Path, *command: str | Path, seconds_max: float) -> str:
    """What a command prints. Fails with all of it unless it ends well."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=seconds_max, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def steps_of(folder: Path, *command: str | Path, seconds_max: float = 30) -> dict[str, Any]:
    """What each step of a script told, by the step's name: a line of JSON each."""
    lines = run(folder, *command, seconds_max=seconds_max).splitlines()
    return {told.pop("step"): told for told in map(json.loads, lines)}
