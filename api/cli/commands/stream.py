"""`millstream stream`: streams and their configuration."""

from typing import Annotated, Any

from api.cli.descriptions.problems import stream_problems
from api.cli.descriptions.sections import (
    Section,
    describe,
    measured_groups,
    measurement_of,
    rows_if_allowed,
    settings_section,
)
from api.cli.errors import CliError, ExitCode
from api.cli.manifests.edit_verb import edit_verb
from api.cli.shell.definitions import Definition, change_verb, delete_verb, put_verbs
from api.cli.shell.options import (
    Prefix,
    Settings,
    StreamName,
    StreamNames,
    duration,
    fields,
    option,
)
from api.cli.shell.output import Column, show_age_of, table, to_row
from api.cli.shell.terminal import Terminal, noun, verb

stream = noun()

STREAMS = table(
    "name",
    Column("open_shards", "shards"),
    Column("measurement.records", "records"),
    Column("measurement.bytes_held", "bytes"),
    Column("measurement.records_in_per_second", "records/s"),
    Column("measurement.lag_records", "lag"),
    Column("measurement.oldest_unread_at", "oldest unread", show_age_of),
    Column("retention_seconds", "retention"),
    "archive",
)
SHARDS = table(Column("index", "shard"), "open", "parents", "start", "next", "bytes", "fenced")
MEASUREMENT = table("records", "bytes_held", Column("records_in_per_second", "records/s"))
GROUPS = table(
    "name",
    "kind",
    Column("measurement.members", "members"),
    Column("measurement.lag_records", "lag"),
    Column("measurement.oldest_unread_at", "oldest unread", show_age_of),
    Column("measurement.committed_per_second", "committed/s"),
    "paused",
)

Shards = Annotated[
    int | None, option("--shards", "Split and merge to this number of equal shards.")
]
Split = Annotated[int | None, option("--split", "Split this shard into two halves.")]
Merge = Annotated[tuple[int, int] | None, option("--merge", "Merge these two adjacent shards.")]
RetentionOption = Annotated[Any, duration("--retention", help="Retention period.")]


def _configuration(
    shards: Annotated[int | None, option("--shards", "Number of shards.")] = None,
    retention: RetentionOption = None,
    set_: Settings = None,
) -> dict[str, Any]:
    return fields(set_, shards=shards, retention_seconds=retention)


STREAM = Definition(stream, "Stream", StreamName, "streams.{}_stream", _configuration)

put_verbs(
    STREAM,
    create=[
        "millstream stream create clicks --shards 2",
        "millstream stream create copies --retention 1d --set key_index=true",
    ],
    apply=["millstream stream apply clicks --shards 2 --retention 3d --dry-run"],
)


edit_verb(STREAM, "millstream stream edit clicks")


change_verb(STREAM, "millstream stream change clicks --retention 3d", without="shards")


@verb(
    stream,
    "ls",
    examples=["millstream stream ls", "millstream stream ls --prefix cl -o ndjson"],
)
def list_streams(cli: Terminal, prefix: Prefix = "") -> None:
    """List streams with counts, rates and lag.

    The lag is that of the group that is furthest behind.
    """
    cli.out.rows(map(to_row, cli.client.streams(prefix, measured=True)), STREAMS)


@verb(
    stream,
    "show",
    examples=["millstream stream show clicks"],
)
def show(cli: Terminal, name: StreamName) -> None:
    """Show a stream: problems, groups and settings."""
    handle = cli.client.stream(name)
    definition, shards = to_row(handle.config()), [to_row(shard) for shard in handle.shards()]
    measurement = measurement_of(cli, "streams.list_streams", name)
    groups = rows_if_allowed(lambda: measured_groups(cli, name))
    describe(
        cli,
        {**definition, "shard_list": shards, "measurement": measurement, "groups": groups},
        stream_problems(definition, shards, groups),
        Section("records", [measurement] if measurement else [], MEASUREMENT),
        Section("groups", groups, GROUPS),
        Section("shards", shards, SHARDS),
        settings_section(definition),
    )


@verb(
    stream,
    "reshard",
    examples=[
        "millstream stream reshard clicks --shards 4",
        "millstream stream reshard copies --split 0",
    ],
)
def reshard(
    cli: Terminal, name: StreamName, shards: Shards = None, split: Split = None, merge: Merge = None
) -> None:
    """Change the number of shards.

    Specify one of --shards, --split and --merge.
    """
    if sum(one is not None for one in (shards, split, merge)) != 1:
        raise CliError("specify one of --shards, --split and --merge", ExitCode.USAGE)
    after = cli.client.stream(name).reshard(shards, split=split, merge=merge)
    if cli.out.for_people:
        cli.out.done(f"Stream {name} has {sum(one.open_ for one in after)} open shards.")
    else:
        cli.out.rows(map(to_row, after), SHARDS)


@delete_verb(STREAM, StreamNames, "millstream stream rm copies clicks --yes")
def remove(cli: Terminal, name: str) -> str:
    """Delete streams and their records."""
    records = sum(shard.next_ - shard.start for shard in cli.client.stream(name).shards())
    return f"Stream {name} and its {records} records will be permanently deleted."
