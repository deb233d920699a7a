"""Archive mode of `millstream up`: location, and whether a worker can run here."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from api.cli.errors import CliError, ExitCode
from api.config.settings import Settings
from spark_worker.runtime.requirements import has_pyspark, missing_requirement
from spark_worker.runtime.spark_options import read_conf_file
from spark_worker.settings import has_cluster
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

    Raises CliError for settings of a Spark cluster with which no worker can run.
    An archive that exists from an earlier run is used also where no worker can run: its files stay readable.
    """
    if settings.archive_url == OFF:
        return ArchiveMode(
            OFF, has_worker=False, notice="The archive is disabled by MILLSTREAM_ARCHIVE_URL.\n"
        )
    url = settings.archive_url or own_archive(data)
    reason = SWITCHED_OFF if settings.spark == OFF else missing_requirement()
    if reason is None:
        check_archive_of_cluster(settings, url)
        spark_conf(settings)
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


def check_archive_of_cluster(settings: Settings, url: str | None) -> None:
    """Raise CliError for an archive that the executors of a cluster do not share."""
    is_directory = url is not None and url.startswith("file:")
    if has_cluster(settings.spark_master) and is_directory and not settings.archive_shared:
        raise CliError(
            f"the archive {url} is a directory of this machine, which the executors of"
            f" MILLSTREAM_SPARK_MASTER={settings.spark_master} do not have: set MILLSTREAM_ARCHIVE_URL to s3://…, or to a"
            " directory that all machines share, with MILLSTREAM_ARCHIVE_SHARED=true",
            ExitCode.USAGE,
        )


def spark_conf(settings: Settings) -> Mapping[str, str]:
    """Return the site's options of Spark.

    Raises CliError for a file that cannot be read, and for options that cannot be set.
    """
    if settings.spark_conf_file is None:
        return {}
    try:
        return read_conf_file(settings.spark_conf_file)
    except (OSError, ValueError) as error:
        raise CliError(f"MILLSTREAM_SPARK_CONF_FILE: {error}", ExitCode.USAGE) from None
