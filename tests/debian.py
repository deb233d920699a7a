"""Debian programs that tests run."""

import os
import shutil
import sys
from pathlib import Path

import pytest

UNPACKED = Path(sys.prefix) / ".debian" / "usr"
"""Directory for servers that would start by themselves if they were installed."""


def debian_program(package: str, *names: str) -> str:
    """Return the path of a package's program, by any of its names.

    Without it a test is skipped, or fails on a CI machine.
    """
    path = f"{os.environ.get('PATH', os.defpath)}:{UNPACKED / 'sbin'}"
    for name in names or (package,):
        if actual_path := shutil.which(name, path=path):
            return actual_path
    reason = f"{package} is not here: apt-get install {package}"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def libraries() -> dict[str, str]:
    """Return the environment in which an unpacked program finds its libraries."""
    unpacked = [str(path) for path in (UNPACKED / "lib").glob("*-linux-gnu")]
    known = os.environ.get("LD_LIBRARY_PATH")
    return {"LD_LIBRARY_PATH": ":".join([*unpacked, known] if known else unpacked)}
