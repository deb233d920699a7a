"""Archive mode of `millstream up`: location, and whether a worker can run here."""

from pathlib import Path

import msgspec

from api.config.settings import Settings
from spark_worker.runtime.requirements import has_pyspark, missing_requirement
from storage.domain import limits

OFF = "off"
_FOLDER = "archive"
SWITCHED_OFF = "MILLSTREAM_SPARK is off"
AWAITED = (
    f"The archive, and replays of {limits.REPLAY_SMALL_RECORDS:,} or more records, start when Spark is "
    "installed.\n"
)


class ArchiveMode(msgspec.Struct, frozen=True):
    """Archive mode.

    `url` is 'off' or the archive's URL; `has_worker`: a worker runs here, which may wait for Spark; `notice`: a line for the
    user when something is not as expected.
    """

    url: str
    has_worker: bool
    notice: str = ""


def resolve_archive_mode(settings: Settings, data: Path) -> ArchiveMode:
    """Decide the archive mode: by default a directory inside the data directory.

    An archive that exists from an earlier run is used also where no worker can run: its files stay readable.
    """
    if settings.archive_url == OFF:
        return ArchiveMode(
            OFF, has_worker=False, notice="The archive is disabled by MILLSTREAM_ARCHIVE_URL.\n"
        )
    url = settings.archive_url or own_archive(data)
    reason = SWITCHED_OFF if settings.spark == OFF else missing_requirement()
    if reason is None:
        return ArchiveMode(url, has_worker=True)
    if settings.spark == "wait" and not has_pyspark():
        return ArchiveMode(url, has_worker=True, notice=AWAITED)
    if settings.archive_url is not None or Path(data, _FOLDER).is_dir():
        notice = f"The archive is readable, but no worker writes to it: {reason}.\n"
        return ArchiveMode(url, has_worker=False, notice=notice)
    return ArchiveMode(OFF, has_worker=False, notice=f"The archive is disabled: {reason}.\n")


def own_archive(data: Path) -> str:
    """Return the URL of a deployment's own archive. `data` is absolute."""
    return (data / _FOLDER).as_uri()
