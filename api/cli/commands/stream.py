"""`millstream stream`: streams and their configuration."""

from typing import Annotated, Any

import typer

from api.cli.errors import CliError, ExitCode
from api.cli.shell.definitions import Definition, put_verbs
from api.cli.shell.options import (
    Prefix,
    Settings,
    StreamName,
    StreamNames,
    Yes,
    duration,
    fields,
)
from api.cli.shell.output import Column, table, to_row
from api.cli.shell.prompts import confirm
from api.cli.shell.terminal import Terminal, noun, verb

stream = noun()

STREAMS = table(
    "name",
    Column("open_shards", "shards"),
    Column("retention_seconds", "retention"),
    "archive",
    Column("created_at", "created"),
)
SHARDS = table(Column("index", "shard"), "open", "parents", "start", "next", "bytes", "fenced")

RetentionOption = Annotated[Any, duration("--retention", help="Retention period.")]


def _configuration(
    shards: Annotated[int | None, typer.Option("--shards", help="Number of shards.")] = None,
    retention: RetentionOption = None,
    set_: Settings = None,
) -> dict[str, Any]:
    return fields(set_, shards=shards, retention_seconds=retention)


def _put(name: str, **conditions: Any) -> Any:
    from millstream_client.core.api.streams.put_stream import put_stream
    from millstream_client.core.models.stream_config import StreamConfig

    return put_stream(name, body=StreamConfig(), **conditions)


put_verbs(
    stream,
    Definition("Stream", StreamName, _put, _configuration),
    create=[
        "millstream stream create clicks --shards 2",
        "millstream stream create copies --retention 1d --set key_index=true",
    ],
    apply=["millstream stream apply clicks --shards 2 --retention 3d --dry-run"],
)


@verb(stream, "change", examples=["millstream stream change clicks --retention 3d"])
def change(
    cli: Terminal, name: StreamName, retention: RetentionOption = None, set_: Settings = None
) -> None:
    """Change fields of a stream's configuration; null resets a field to its default."""
    changed = cli.client.stream(name).change(**fields(set_, retention_seconds=retention))
    cli.out.done(f"Updated stream {name}.", to_row(changed))


@verb(
    stream,
    "ls",
    examples=["millstream stream ls", "millstream stream ls --prefix cl -o ndjson"],
)
def list_streams(cli: Terminal, prefix: Prefix = "") -> None:
    """List streams."""
    cli.out.rows(map(to_row, cli.client.streams(prefix)), STREAMS)


@verb(
    stream,
    "show",
    examples=["millstream stream show clicks"],
)
def show(cli: Terminal, name: StreamName) -> None:
    """Show a stream's configuration and its shards."""
    handle = cli.client.stream(name)
    shards = [to_row(shard) for shard in handle.shards()]
    cli.out.show({**to_row(handle.config()), "shard_list": shards}, shard_list=SHARDS)


@verb(
    stream,
    "reshard",
    examples=[
        "millstream stream reshard clicks --shards 4",
        "millstream stream reshard copies --split 0",
    ],
)
def reshard(
    cli: Terminal,
    name: StreamName,
    shards: Annotated[
        int | None, typer.Option("--shards", help="Split and merge to this number of equal shards.")
    ] = None,
    split: Annotated[
        int | None, typer.Option("--split", help="Split this shard into two halves.")
    ] = None,
    merge: Annotated[
        tuple[int, int] | None, typer.Option("--merge", help="Merge these two adjacent shards.")
    ] = None,
) -> None:
    """Change the number of shards: specify one of --shards, --split and --merge."""
    if sum(one is not None for one in (shards, split, merge)) != 1:
        raise CliError("specify one of --shards, --split and --merge", ExitCode.USAGE)
    after = cli.client.stream(name).reshard(shards, split=split, merge=merge)
    if cli.out.for_people:
        cli.out.done(f"Stream {name} has {sum(one.open_ for one in after)} open shards.")
    else:
        cli.out.rows(map(to_row, after), SHARDS)


@verb(stream, "rm", examples=["millstream stream rm copies clicks --yes"])
def remove(cli: Terminal, names: StreamNames, yes: Yes = False) -> None:
    """Delete streams and their records."""
    for name in names:
        records = sum(shard.next_ - shard.start for shard in cli.client.stream(name).shards())
        confirm(
            cli,
            f"Stream {name} and its {records} records will be permanently deleted.",
            name,
            yes=yes,
        )
        cli.client.stream(name).delete()
        cli.out.done(f"Deleted stream {name}.", {"name": name, "deleted": True})
