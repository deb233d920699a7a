"""Archive of the classes that Spark loads, which `make test` builds."""

import os
from pathlib import Path

import pytest

from spark_worker.runtime import class_archive


def mapped_files(pid: int) -> str:
    """Return the kernel's list of what a process has mapped."""
    return Path(f"/proc/{pid}/maps").read_text()


async def test_jvm_maps_class_archive(sparks):
    if not class_archive.load_options() and not os.environ.get("CI"):
        pytest.skip("make test builds the archive")
    await sparks.get()

    assert f"/{class_archive.FILE.name}" in mapped_files(sparks.jvm_pid)
