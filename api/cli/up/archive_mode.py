"""Archive mode of `millstream up`: location, and whether a worker can run here."""

from importlib.util import find_spec
from pathlib import Path

import msgspec

from api.config.settings import Settings
from spark_worker.runtime.java import JavaMissing, find_java

OFF = "off"
_FOLDER = "archive"
NO_SPARK = "PySpark is not installed: pip install '.[spark]' in a clone of Millstream"


class ArchiveMode(msgspec.Struct, frozen=True):
    """Archive mode.

    `url` is 'off' or the archive's URL; `works`: a worker is to run here; `notice`: a line for the user when something is
    not as expected.
    """

    url: str
    works: bool
    notice: str = ""


def resolve_archive_mode(settings: Settings, data: Path) -> ArchiveMode:
    """Decide the archive mode: by default a directory inside the data directory.

    An archive that exists from an earlier run is used also where no worker can run: its files stay readable.
    """
    if settings.archive_url == OFF:
        return ArchiveMode(
            OFF, works=False, notice="The archive is disabled by MILLSTREAM_ARCHIVE_URL.\n"
        )
    url, reason = settings.archive_url or own_archive(data), why_not()
    if reason is None:
        return ArchiveMode(url, works=True)
    if settings.archive_url is not None or Path(data, _FOLDER).is_dir():
        notice = f"The archive is readable, but no worker writes to it: {reason}.\n"
        return ArchiveMode(url, works=False, notice=notice)
    return ArchiveMode(OFF, works=False, notice=f"The archive is disabled: {reason}.\n")


def own_archive(data: Path) -> str:
    """Return the URL of a deployment's own archive. `data` is absolute."""
    return (data / _FOLDER).as_uri()


def why_not() -> str | None:
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
    return find_spec("pyspark") is not None
