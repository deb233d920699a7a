"""`millstream backup` and `millstream restore`: both stores as files, and back. They ask no service, only the stores."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from api.cli.commands.processes import Data, Server
from api.cli.settings import settings_said
from api.cli.terminal import noun
from storage.domain.backups import Manifest

backups = noun("Backups.")

AsJson = Annotated[bool, typer.Option("--json", help="Answer as JSON.")]

MADE = """\
{place} has all that was acknowledged before it was begun: {manifest.bytes:,} bytes.
Keep beside it, for it has neither: the secret keys (secret.keys, or what MILLSTREAM_SECRET_KEYS says) and the archive's files.\
"""
RESTORED = """\
{place} is restored. Start the service with the secret keys and the archive of the deployment that it is of, and never beside that one.\
"""


@backups.command()
def backup(
    target: Annotated[Path, typer.Argument(help="A directory that is not there yet.")],
    data: Data = None,
    as_json: AsJson = False,
) -> None:
    """Back up Postgres and the hot store, while the service runs or not.

    The stores are those of REDIS_URL and DATABASE_URL, or else of the data directory.
    """
    from api.cli.backups import backup as run

    _tell(MADE, target, run(settings_said(data=data), target), as_json=as_json)


@backups.command()
def restore(
    source: Annotated[Path, typer.Argument(help="What `millstream backup` made.")],
    data: Data = None,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Restore a backup into empty stores: those of REDIS_URL and DATABASE_URL, or else a new data directory."""
    from api.cli.backups import restore as run

    _tell(RESTORED, source, run(settings_said(data=data, server=server), source), as_json=as_json)


def _tell(sentence: str, place: Path, manifest: Manifest, *, as_json: bool) -> None:
    if as_json:
        told = {
            "path": str(place),
            "millstream": manifest.millstream,
            "began_at_ms": manifest.began_at_ms,
            "ended_at_ms": manifest.ended_at_ms,
            "bytes": manifest.bytes,
            "rows": sum(table.rows for table in manifest.tables),
        }
        typer.echo(msgspec.json.encode(told).decode())
    else:
        typer.echo(sentence.format(place=place, manifest=manifest))
