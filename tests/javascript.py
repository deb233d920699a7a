"""Packages and scripts of JavaScript, for the tests that are written in it."""

import fcntl
import hashlib
import json
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def install(folder: Path) -> None:
    """The packages of a folder's lock: installed where the lock is another than it was."""
    packages = folder / "node_modules"
    with _once(folder, packages / ".installed", [folder / "package-lock.json"]) as is_due:
        if is_due:
            run(folder, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", seconds_max=100)


def compile_typescript(folder: Path) -> None:
    """What a folder's TypeScript compiler makes of its sources, where those are others than they were."""
    install(folder)
    sources = [
        folder / "package-lock.json",
        folder / "tsconfig.json",
        *(folder / "src").rglob("*.ts"),
    ]
    with _once(folder, folder / "dist" / ".compiled", sources) as is_due:
        if is_due:
            run(folder, "node_modules/.bin/tsc", seconds_max=100)


@contextmanager
def _once(folder: Path, done: Path, sources: Iterable[Path]) -> Iterator[bool]:
    """Whether something is to be made of its sources: by one process at a time, and not again. `done` goes with what is
    made, so it never outlives that."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(sources))).hexdigest()
    with (folder / "package.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        is_due = not done.exists() or done.read_text() != digest
        yield is_due
        if is_due:
            done.write_text(digest)


def run(folder: Path, *command: str | Path, seconds_max: float) -> str:
    """What a command prints. Fails with all of it unless it ends well."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=seconds_max, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def steps_of(folder: Path, *command: str | Path, seconds_max: float = 100) -> dict[str, Any]:
    """What each step of a script told, by the step's name: a line of JSON each."""
    lines = run(folder, *command, seconds_max=seconds_max).splitlines()
    return {told.pop("step"): told for told in map(json.loads, lines)}
