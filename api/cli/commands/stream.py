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
from api.cli.shell.output import Column, Row, show_age_of, show_value, table, to_row
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


def _show_share(share: float) -> str:
    return f"{share:.0%}"


def _show_keys(keys: list[Row]) -> str:
    return ", ".join(f"{show_value(key['key'])} {_show_share(key['share'])}" for key in keys) or "-"


LOADS = table(
    "shard",
    Column("records_per_second", "records/s"),
    Column("bytes_per_second", "bytes/s"),
    Column("keys", "hottest keys", _show_keys),
    Column("split.larger_share", "larger half after a split", _show_share),
)
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
Split = Annotated[int | None, option("--split", "Split this shard, in its middle by default.")]
SplitAt = Annotated[
    str | None,
    option(
        "--at",
        "With --split: the hash key to split at, or 'load' to divide the recent records.",
        metavar="HASH_KEY",
    ),
]
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


change_verb(STREAM, "millstream stream change clicks --retention 3d", without=("shards",))


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
    cli: Terminal,
    name: StreamName,
    shards: Shards = None,
    split: Split = None,
    split_at: SplitAt = None,
    merge: Merge = None,
) -> None:
    """Change the number of shards.

    Specify one of --shards, --split and --merge.
    """
    if sum(one is not None for one in (shards, split, merge)) != 1:
        raise CliError("specify one of --shards, --split and --merge", ExitCode.USAGE)
    if split_at is not None and split is None:
        raise CliError("--at needs --split", ExitCode.USAGE)
    at_hash_key = _split_point(cli, name, split, split_at)
    after = cli.client.stream(name).reshard(
        shards, split=split, at_hash_key=at_hash_key, merge=merge
    )
    if cli.out.for_people:
        cli.out.done(f"Stream {name} has {sum(one.open_ for one in after)} open shards.")
    else:
        cli.out.rows(map(to_row, after), SHARDS)


def _split_point(cli: Terminal, name: str, shard: int | None, split_at: str | None) -> int | None:
    """Return the hash key to split a shard at; None for its middle."""
    if split_at is None or split_at.isdecimal():
        return None if split_at is None else int(split_at)
    if split_at != "load":
        raise CliError("--at takes a hash key, which is a number, or 'load'", ExitCode.USAGE)
    load = next((item for item in cli.client.stream(name).load() if item.shard == shard), None)
    if load is None or load.split is None:
        reason = "has no recent records" if load is None or not load.sampled else "has one hot key"
        raise CliError(f"shard {shard} {reason}: a split would not divide its load", ExitCode.USAGE)
    return int(load.split.at_hash_key)


@verb(stream, "load", examples=["millstream stream load clicks"])
def load(cli: Terminal, name: StreamName) -> None:
    """Show the load and hottest keys of each shard."""
    cli.out.rows(map(to_row, cli.client.stream(name).load()), LOADS)


@delete_verb(STREAM, StreamNames, "millstream stream rm copies clicks --yes")
def remove(cli: Terminal, name: str) -> str:
    """Delete streams and their records."""
    records = sum(shard.next_ - shard.start for shard in cli.client.stream(name).shards())
    return f"Stream {name} and its {records} records will be permanently deleted."
