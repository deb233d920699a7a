"""JavaScript packages and scripts, for tests written in JavaScript."""

import fcntl
import hashlib
import json
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def install(folder: Path) -> None:
    """Install the packages of a folder's lock file, if it has changed."""
    packages = folder / "node_modules"
    with _once(folder, packages / ".installed", [folder / "package-lock.json"]) as is_due:
        if is_due:
            run(folder, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", seconds_max=100)


def compile_typescript(folder: Path) -> None:
    """Build a folder's TypeScript, if its sources have changed."""
    install(folder)
    sources = [
        folder / "package.json",
        folder / "package-lock.json",
        *folder.glob("tsconfig*.json"),
        *(folder / "src").rglob("*.ts"),
    ]
    with _once(folder, folder / "dist" / ".compiled", sources) as is_due:
        if is_due:
            run(folder, "npm", "run", "--silent", "build", seconds_max=200)


@contextmanager
def _once(folder: Path, done: Path, sources: Iterable[Path]) -> Iterator[bool]:
    """Return whether a build is due, for one process at a time.

    `done` is removed with the build, so it never outlives it.
    """
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(sources))).hexdigest()
    with (folder / "package.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        is_due = not done.exists() or done.read_text() != digest
        yield is_due
        if is_due:
            done.write_text(digest)


def run(folder: Path, *command: str | Path, seconds_max: float) -> str:
    """Run a command that must succeed, and return its output."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=seconds_max, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def steps_of(folder: Path, *command: str | Path, seconds_max: float = 100) -> dict[str, Any]:
    """Return the results of a script's steps by name; it prints one JSON line per step."""
    lines = run(folder, *command, seconds_max=seconds_max).splitlines()
    return {told.pop("step"): told for told in map(json.loads, lines)}
