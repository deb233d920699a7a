"""Command `millstream archive verify`: read the whole archive and report altered files."""

import asyncio

import typer

from api.cli.errors import CliError, ExitCode
from api.config.settings import Settings
from storage.archive.verify import ArchiveVerifier, open_archive_check
from storage.bootstrap import open_storage
from storage.catalog.catalog import Catalog
from storage.domain.errors import ArchiveOff
from storage.domain.names import DEFAULT_NAMESPACE, StreamName


def verify(settings: Settings, stream: str | None) -> bool:
    """Print a line for each shard and each fault; return whether there was none.

    Raises CliError without an archive.
    """
    try:
        return asyncio.run(_verify(settings, stream))
    except ArchiveOff as error:
        raise CliError(error.detail, ExitCode.USAGE) from None


async def _verify(settings: Settings, stream: str | None) -> bool:
    storage_settings = settings.storage()
    async with (
        open_storage(storage_settings) as storage,
        open_archive_check(storage_settings) as check,
    ):
        selected = None
        if stream is not None:
            selected = await storage.catalog.stream(StreamName(stream, DEFAULT_NAMESPACE))
        names = await _names(storage.catalog)
        return await _print_report(check, selected.stream_id if selected else None, names)


async def _print_report(
    check: ArchiveVerifier, stream_id: str | None, names: dict[str, str]
) -> bool:
    sound = True
    async for shard in check.shards(stream_id):
        name = names.get(shard.stream_id, shard.stream_id)
        verdict = "damaged" if shard.faults else "sound"
        typer.echo(
            f"{name} shard {shard.shard}: {shard.records} records in {shard.files} files: {verdict}"
        )
        for fault in shard.faults:
            typer.echo(f"  {fault}", err=True)
        sound = sound and not shard.faults
    return sound


async def _names(catalog: Catalog) -> dict[str, str]:
    """Return the names of streams by id; a queue's view has the queue's name."""
    names = {stream.stream_id: stream.name.name async for stream in catalog.iter_streams()}
    return names | {queue.log_id: queue.name.name async for queue in catalog.iter_queues()}
