"""Commands `millstream backup` and `millstream restore`: selection of the stores.

both URLs are set                  those
a Millstream runs on DATA          its own; a restore is refused
nothing runs on DATA               DATA is locked, and its servers run for the duration of the command
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import metadata
from pathlib import Path

from api.cli.errors import CliError, ExitCode
from api.cli.shell.interrupts import ended_by_sigterm
from api.cli.up.archive_mode import own_archive
from api.cli.up.data_directory import acquire_lock, check_version, data_directory, in_use
from api.cli.up.local_stores import store_servers, store_settings
from api.config.settings import Settings
from storage.backup.backup import backup as write_backup
from storage.backup.restore import read_backup
from storage.backup.restore import restore as restore_backup
from storage.backup.tarball import unpack
from storage.domain.backup_manifest import BackupError, Manifest
from storage.domain.clock import SystemClock
from storage.embedded.errors import EmbeddedServerError
from storage.embedded.replicated_stores import read_record
from storage.embedded.servers import running


def backup(settings: Settings, target: Path, *, with_archive: bool = False) -> Manifest:
    """Back up the stores that the settings select. Raises CliError, MillstreamError."""
    with _as_cli_error(), ended_by_sigterm(), _stores_of(settings, empty=False) as stores:
        return write_backup(
            stores.storage(),
            target,
            SystemClock(),
            metadata.version("millstream"),
            with_archive=with_archive,
        )


def restore(settings: Settings, source: Path) -> Manifest:
    """Restore a backup into the stores that the settings select.

    Raises CliError, MillstreamError.
    """
    with _as_cli_error(), ended_by_sigterm(), unpack(source) as folder:
        read_backup(folder)  # before anything is created in DATA
        with _stores_of(settings, empty=True) as stores:
            return restore_backup(stores.storage(), folder, settings.server)


@contextmanager
def _as_cli_error() -> Iterator[None]:
    try:
        yield
    except BackupError as error:
        raise CliError(str(error)) from None
    except EmbeddedServerError as error:
        raise CliError(str(error), ExitCode.UNAVAILABLE) from None
    except RuntimeError as error:  # the database is newer than this version
        raise CliError(str(error)) from None


@contextmanager
def _stores_of(settings: Settings, *, empty: bool) -> Iterator[Settings]:
    """Yield the settings with the URLs of both running stores. `empty`: they are to be filled."""
    if settings.redis_url is not None and settings.database_url is not None:
        yield settings
    elif in_use(settings.data):
        if empty:
            raise CliError(
                f"a Millstream is running on {settings.data}: stop it and specify a new directory with --data"
            )
        data = settings.data.resolve()
        yield _with_urls(settings, data)
    else:
        with _started(settings, empty=empty) as started:
            yield started


@contextmanager
def _started(settings: Settings, *, empty: bool) -> Iterator[Settings]:
    exists = (settings.data / "version").exists()
    if not empty and not exists:
        raise CliError(
            f"no Millstream data in {settings.data}: specify --data, or set REDIS_URL and DATABASE_URL",
            ExitCode.UNAVAILABLE,
        )
    if empty and exists:
        raise CliError(
            f"{settings.data} already contains Millstream data: specify a new directory with --data, or remove this one if an interrupted restore left it"
        )
    with (
        data_directory(settings.data, ephemeral=False) as data,
        acquire_lock(data),
        ExitStack() as stack,
    ):
        check_version(data)
        if settings.redis_url is None and read_record(data) is not None:
            raise CliError(
                f"the stores of {data} are replicated, and which of them is the primary is decided while they run:"
                " start `millstream up` first"
            )
        unlimited = settings.model_copy(update={"memory_mb": 0})  # a snapshot of any size is loaded
        for server in store_servers(unlimited, data):
            stack.enter_context(running(server))
        yield _with_urls(settings, data)


def _with_urls(settings: Settings, data: Path) -> Settings:
    archive_url = settings.archive_url or own_archive(data)
    return settings.model_copy(
        update={**store_settings(settings, data), "archive_url": archive_url}
    )
