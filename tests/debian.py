"""Programs that Debian packages and a test runs."""

import os
import shutil
import sys
from pathlib import Path

import pytest

UNPACKED = Path(sys.prefix) / ".debian" / "usr"
"""Where `make test` leaves what would begin to serve if it were installed."""


def debian_program(package: str, *names: str) -> str:
    """The path of a package's program, by any of its names. Without it a test is skipped; on a machine of CI it fails."""
    path = f"{os.environ.get('PATH', os.defpath)}:{UNPACKED / 'sbin'}"
    for name in names or (package,):
        if found := shutil.which(name, path=path):
            return found
    reason = f"{package} is not here: apt-get install {package}"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def libraries() -> dict[str, str]:
    """The environment in which a program that was only unpacked finds its libraries."""
    unpacked = [str(path) for path in (UNPACKED / "lib").glob("*-linux-gnu")]
    known = os.environ.get("LD_LIBRARY_PATH")
    return {"LD_LIBRARY_PATH": ":".join([*unpacked, known] if known else unpacked)}
