"""`millstream backup` and `millstream restore`: both stores as files, and back. They ask no service, only the stores."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from api.cli.commands.processes import Data, Server
from api.cli.config.process_settings import settings_said
from api.cli.shell.terminal import noun
from storage.domain.backup_manifest import Manifest

backups = noun("Backups.")

AsJson = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]

MADE = """\
{place} contains everything that was acknowledged before it began: {manifest.bytes:,} bytes.
Not included: the secret keys (secret.keys, or MILLSTREAM_SECRET_KEYS) and the archive's files. Back them up separately.\
"""
MADE_WITH_ARCHIVE = """\
{place} contains everything that was acknowledged before it began: {manifest.bytes:,} bytes, archive files: {manifest.archived:,}.
Not included: the secret keys (secret.keys, or MILLSTREAM_SECRET_KEYS). Back them up separately.\
"""
RESTORED = """\
{place} is restored. Start the service with the original deployment's secret keys and archive, and never run both at once.\
"""
RESTORED_WITH_ARCHIVE = """\
{place} is restored, archive files: {manifest.archived:,}. Start the service with the original deployment's secret keys.\
"""


@backups.command()
def backup(
    target: Annotated[
        Path,
        typer.Argument(
            help="A directory that is not there yet; one file if its name ends in .tar."
        ),
    ],
    data: Data = None,
    with_archive: Annotated[
        bool, typer.Option("--with-archive", help="Copy the archive's files too.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Back up Postgres and the hot store, while the service runs or not.

    The stores are those of REDIS_URL and DATABASE_URL, or else of the data directory.
    """
    from api.cli.ops.backup import backup as run

    manifest = run(settings_said(data=data), target, with_archive=with_archive)
    _tell(MADE_WITH_ARCHIVE if with_archive else MADE, target, manifest, as_json=as_json)


@backups.command()
def restore(
    source: Annotated[Path, typer.Argument(help="What `millstream backup` made.")],
    data: Data = None,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Restore a backup into empty stores: those of REDIS_URL and DATABASE_URL, or else a new data directory."""
    from api.cli.ops.backup import restore as run

    manifest = run(settings_said(data=data, server=server), source)
    sentence = RESTORED_WITH_ARCHIVE if manifest.archived else RESTORED
    _tell(sentence, source, manifest, as_json=as_json)


def _tell(sentence: str, place: Path, manifest: Manifest, *, as_json: bool) -> None:
    if as_json:
        told = {
            "path": str(place),
            "millstream": manifest.millstream,
            "began_at_ms": manifest.began_at_ms,
            "ended_at_ms": manifest.ended_at_ms,
            "bytes": manifest.bytes,
            "archived_files": manifest.archived,
            "rows": sum(table.rows for table in manifest.tables),
        }
        typer.echo(msgspec.json.encode(told).decode())
    else:
        typer.echo(sentence.format(place=place, manifest=manifest))
