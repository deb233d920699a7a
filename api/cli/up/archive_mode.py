"""Archive mode of `millstream up`: location, and whether a worker can run here."""

import asyncio
import importlib
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import msgspec

from api.config.settings import Settings
from spark_worker.runtime.java import JavaMissing, find_java

OFF = "off"
_FOLDER = "archive"
NO_SPARK = "PySpark is not installed: pip install 'millstream[spark]', or make up in a clone"
SWITCHED_OFF = "MILLSTREAM_SPARK is off"
AWAITED = "The archive and replays start when Spark is installed.\n"
INSTALLED_POLL_S = 2.0

WorkerStart = Literal["now", "when installed", "never"]


class ArchiveMode(msgspec.Struct, frozen=True):
    """Archive mode.

    `url` is 'off' or the archive's URL; `worker`: when a worker is to start here; `notice`: a line for the user when
    something is not as expected.
    """

    url: str
    worker: WorkerStart
    notice: str = ""


def resolve_archive_mode(settings: Settings, data: Path) -> ArchiveMode:
    """Decide the archive mode: by default a directory inside the data directory.

    An archive that exists from an earlier run is used also where no worker can run: its files stay readable.
    """
    if settings.archive_url == OFF:
        return ArchiveMode(
            OFF, worker="never", notice="The archive is disabled by MILLSTREAM_ARCHIVE_URL.\n"
        )
    url = settings.archive_url or own_archive(data)
    reason = SWITCHED_OFF if settings.spark == OFF else missing_requirement()
    if reason is None:
        return ArchiveMode(url, worker="now")
    if settings.spark == "wait" and not has_pyspark():
        return ArchiveMode(url, worker="when installed", notice=AWAITED)
    if settings.archive_url is not None or Path(data, _FOLDER).is_dir():
        notice = f"The archive is readable, but no worker writes to it: {reason}.\n"
        return ArchiveMode(url, worker="never", notice=notice)
    return ArchiveMode(OFF, worker="never", notice=f"The archive is disabled: {reason}.\n")


async def wait_until_installed() -> str | None:
    """Wait for a complete installation of PySpark, then return why no worker can run, or None."""
    while not _installer():
        await asyncio.sleep(INSTALLED_POLL_S)
        importlib.invalidate_caches()
    return await asyncio.to_thread(missing_requirement)


def own_archive(data: Path) -> str:
    """Return the URL of a deployment's own archive. `data` is absolute."""
    return (data / _FOLDER).as_uri()


def missing_requirement() -> str | None:
    """Return the reason why no worker can run on this machine; None where one can."""
    if not has_pyspark():
        return NO_SPARK
    try:
        find_java()
    except JavaMissing as missing:
        return str(missing)
    return None


def has_pyspark() -> bool:
    """Return whether PySpark is installed, without loading it."""
    return find_spec("pyspark") is not None and _installer() != ""


def _installer() -> str | None:
    """Return the name of what installed PySpark; empty before it has finished.

    None without a package: Spark's own folder on the path.
    """
    try:
        return distribution("pyspark").read_text("INSTALLER") or ""
    except PackageNotFoundError:
        return None
