"""Programs that Debian packages and a test runs."""

import os
import shutil
import sys
from pathlib import Path

import pytest

UNPACKED = Path(sys.prefix) / ".debian" / "usr" / "sbin"
"""Where `make test` leaves what would begin to serve if it were installed."""


def debian_program(package: str, *names: str) -> str:
    """The path of a package's program, by any of its names. Without it a test is skipped; on a machine of CI it fails."""
    path = f"{os.environ.get('PATH', os.defpath)}:{UNPACKED}"
    for name in names or (package,):
        if found := shutil.which(name, path=path):
            return found
    reason = f"{package} is not here: apt-get install {package}"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
