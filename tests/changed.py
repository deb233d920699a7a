"""Unit tests of what changed since a commit: `python -m tests.changed [commit]` runs them, for `make fast`.

Of a changed module they are the files that import it, and the folder of `tests/unit` that mirrors it. `make check` runs all.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documentation import ROOT

UNIT = ROOT / "tests" / "unit"
SOURCES = ("api", "consumers", "pyspark_millstream", "spark_worker", "storage")
OF_SOURCES = ("test_language.py", "test_layout.py")
OF_PAGES = ("test_documentation.py", "test_wording.py")
OF_FILES = {
    "Makefile": ("deploy/test_compose.py", "test_documentation.py"),
    "Dockerfile": ("deploy/test_compose.py",),
    "pyproject.toml": ("deploy/test_locks.py", "test_pythons.py"),
    "openapi/openapi.json": ("test_openapi.py", "test_documentation.py"),
    "openapi/asyncapi.json": ("test_asyncapi.py", "test_documentation.py"),
}
"""Tests that read a file without importing anything."""


def changed_files(commit: str) -> list[str]:
    """Return the files that differ from a commit, and the new ones; deleted ones are left out."""
    since = _git("diff", "--name-only", "--diff-filter=d", commit)
    return sorted({*since, *_git("ls-files", "--others", "--exclude-standard")})


def select_tests(files: list[str]) -> list[str]:
    """Return the unit tests of these files, as paths below the repository's root."""
    importers = _importers()
    selected = {test for file in files for test in _tests_for(file, importers)}
    folders = {test for test in selected if test.is_dir()}
    return sorted(
        str(test.relative_to(ROOT)) for test in selected if not folders & set(test.parents)
    )


def _tests_for(file: str, importers: dict[str, set[Path]]) -> Iterator[Path]:
    path = Path(file)
    yield from (UNIT / name for name in OF_FILES.get(file, ()))
    if path.suffix == ".md":
        yield from (UNIT / name for name in OF_PAGES)
    if path.suffix != ".py":
        return
    if path.is_relative_to("tests/unit") and path.name.startswith("test_"):
        yield ROOT / path
    yield from importers.get(module_of(path), ())
    if path.parts[0] in SOURCES:
        yield from (UNIT / name for name in OF_SOURCES)
        yield from (UNIT / part for part in path.parts[1:-1] if (UNIT / part).is_dir())


def module_of(path: Path) -> str:
    """Return the name by which a file is imported; `path` is relative to the root."""
    parts = list(path.with_suffix("").parts)
    if parts[:3] == ["openapi", "sdk", "python"]:
        parts = parts[3:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _importers() -> dict[str, set[Path]]:
    """Map each imported module to the unit tests that import it."""
    importers: dict[str, set[Path]] = {}
    for test in UNIT.rglob("test_*.py"):
        for module in _imported(ast.parse(test.read_text())):
            importers.setdefault(module, set()).add(test)
    return importers


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield module
                yield from (f"{module}.{alias.name}" for alias in names)
            case _:
                pass


def _git(*words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def main() -> int:
    """Run the tests; none is a success."""
    selected = select_tests(changed_files(sys.argv[1] if len(sys.argv) > 1 else "HEAD"))
    if not selected:
        sys.stdout.write("No unit test belongs to what changed.\n")
        return 0
    return pytest.main(["-q", "-m", "not chaos", "--durations=0", "--durations-min=1", *selected])


if __name__ == "__main__":
    sys.exit(main())
