"""`millstream backup` and `millstream restore`: both stores as files, without a service."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli.config.process_settings import settings_from_cli
from api.cli.shell.options import DataOption, ServerOption, option
from api.cli.shell.terminal import noun

if TYPE_CHECKING:
    from storage.domain.backup_manifest import Manifest

backups = noun()

AsJson = Annotated[bool, option("--json", "Print the result as JSON.")]

MADE = """\
{place} contains everything acknowledged before the backup started: {manifest.bytes:,} bytes.
Not included: the secret keys (secret.keys, or MILLSTREAM_SECRET_KEYS) and the archive's files. Back them up separately.\
"""
MADE_WITH_ARCHIVE = """\
{place} contains everything acknowledged before the backup started: {manifest.bytes:,} bytes, archive files: {manifest.archived:,}.
Not included: the secret keys (secret.keys, or MILLSTREAM_SECRET_KEYS). Back them up separately.\
"""
RESTORED = """\
Restored {place}. Start the service with the original deployment's secret keys and archive. Never run both deployments at the same time.\
"""
RESTORED_WITH_ARCHIVE = """\
Restored {place}, archive files: {manifest.archived:,}. Start the service with the original deployment's secret keys.\
"""


@backups.command()
def backup(
    target: Annotated[
        Path,
        typer.Argument(help="Directory to create, or a single file if the name ends in .tar."),
    ],
    data: DataOption = None,
    with_archive: Annotated[bool, option("--with-archive", "Include the archive's files.")] = False,
    as_json: AsJson = False,
) -> None:
    """Back up Postgres and the hot store. The service can keep running.

    Uses the stores at REDIS_URL and DATABASE_URL, or those of the data directory.
    """
    from api.cli.ops.backup import backup as run

    manifest = run(settings_from_cli(data=data), target, with_archive=with_archive)
    _report(MADE_WITH_ARCHIVE if with_archive else MADE, target, manifest, as_json=as_json)


@backups.command()
def restore(
    source: Annotated[Path, typer.Argument(help="A backup created by `millstream backup`.")],
    data: DataOption = None,
    server: ServerOption = None,
    as_json: AsJson = False,
) -> None:
    """Restore a backup into empty stores.

    Uses the stores at REDIS_URL and DATABASE_URL, or a new data directory.
    """
    from api.cli.ops.backup import restore as run

    manifest = run(settings_from_cli(data=data, server=server), source)
    sentence = RESTORED_WITH_ARCHIVE if manifest.archived else RESTORED
    _report(sentence, source, manifest, as_json=as_json)


def _report(sentence: str, place: Path, manifest: "Manifest", *, as_json: bool) -> None:
    import msgspec

    if as_json:
        result = {
            "path": str(place),
            "millstream": manifest.millstream,
            "began_at_ms": manifest.began_at_ms,
            "ended_at_ms": manifest.ended_at_ms,
            "bytes": manifest.bytes,
            "archived_files": manifest.archived,
            "rows": sum(table.rows for table in manifest.tables),
        }
        typer.echo(msgspec.json.encode(result).decode())
    else:
        typer.echo(sentence.format(place=place, manifest=manifest))
