"""`millstream group`: consumer groups, their lag and resets."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from api.cli.descriptions.problems import group_problems
from api.cli.descriptions.sections import Section, describe, measurement_of, settings_section
from api.cli.grammar.common_options import parsed_by
from api.cli.grammar.parsers import EARLIEST, LATEST, parse_offsets, parse_time
from api.cli.manifests.edit_verb import edit_verb
from api.cli.shell.clock import now
from api.cli.shell.definitions import Definition, delete_verb, pause_verbs, put_verbs
from api.cli.shell.options import (
    GroupName,
    GroupNames,
    Prefix,
    Settings,
    StreamName,
    Yes,
    fields,
    option,
)
from api.cli.shell.output import Column, Row, show_age_of, table, to_row
from api.cli.shell.prompts import confirm
from api.cli.shell.terminal import Terminal, noun, verb

group = noun()

GROUPS = table(
    "name",
    "stream",
    "kind",
    Column("measurement.members", "members"),
    Column("measurement.lag_records", "lag"),
    Column("measurement.oldest_unread_at", "oldest unread", show_age_of),
    Column("measurement.committed_per_second", "committed/s"),
    "paused",
)
MEMBERS = table("member", "assigned", "disconnected", "static", "heartbeat_at")
LAGS = table("shard", "member", "position", "tip", "records", "expired", "lag_seconds")
RESETS = table("shard", "before", "after", "expired")

BOOKMARK = "bookmark:"


class GroupStartOption(StrEnum):
    """Start position of a group."""

    EARLIEST = "earliest"
    LATEST = "latest"


def parse_reset(text: str) -> dict[str, Any]:
    """Parse the target of a reset into the SDK's form. Raises ValueError."""
    if text in EARLIEST:
        return {"to": "earliest"}
    if text in LATEST:
        return {"to": "latest"}
    if text.startswith(BOOKMARK):
        return {"to": "bookmark", "bookmark": text.removeprefix(BOOKMARK)}
    if "=" in text:
        return {"to": "offsets", "offsets": parse_offsets(text)}
    return {"to": "time", "time": parse_time(text, now())}


def _configuration(
    stream: StreamName,
    start: Annotated[GroupStartOption | None, option("--start", "Start position.")] = None,
    simple: Annotated[
        bool, option("--simple", "Store offsets only; readers distribute the shards themselves.")
    ] = False,
    set_: Settings = None,
) -> dict[str, Any]:
    return fields(set_, stream=stream, kind="simple" if simple else None, start=start)


GROUP = Definition(group, "Group", GroupName, "groups.{}_consumer_group", _configuration)

put_verbs(
    GROUP,
    create=[
        "millstream group create billing clicks",
        "millstream group create audit clicks --start latest",
    ],
    apply=["millstream group apply billing clicks --set session_timeout_seconds=10 --dry-run"],
)


edit_verb(GROUP, "millstream group edit billing")


pause_verbs(
    GROUP,
    pause="Pause a group. Its members receive no records until it is resumed.",
    resume="Resume a group.",
    example="billing",
)


@verb(group, "ls", examples=["millstream group ls"])
def list_groups(cli: Terminal, prefix: Prefix = "") -> None:
    """List groups with members, lag and rate."""
    cli.out.rows(map(to_row, cli.client.groups(prefix, measured=True)), GROUPS)


@verb(group, "show", examples=["millstream group show billing"])
def show(cli: Terminal, name: GroupName) -> None:
    """Show a group: problems, lag and members."""
    handle = cli.client.group(name)
    details, lag = to_row(handle.details()), to_row(handle.lag())
    measurement = measurement_of(cli, "groups.list_consumer_groups", name)
    describe(
        cli,
        {**details, "lag": lag, "measurement": measurement},
        group_problems(details, lag),
        Section("lag", _totals(lag, measurement)),
        Section("members", details["members"], MEMBERS),
        Section("shards", lag["shards"], LAGS),
        settings_section(details, "members", "shards", "generation"),
    )


def _totals(lag: Row, measurement: Row | None) -> Row:
    """Return the lag of the whole group, and its rate if it was measured."""
    totals = {name: value for name, value in lag.items() if name != "shards"}
    rate = measurement and measurement["committed_per_second"]
    return totals if rate is None else {**totals, "committed_per_second": rate}


@verb(
    group,
    "lag",
    examples=["millstream group lag billing", "millstream group lag billing -o json | jq .records"],
)
def lag(cli: Terminal, name: GroupName) -> None:
    """Show the lag of a group by shard.

    In records and in time.
    """
    cli.out.show(to_row(cli.client.group(name).lag()), shards=LAGS)


@verb(
    group,
    "reset",
    examples=[
        "millstream group reset billing --to 10m --dry-run",
        "millstream group reset billing --to earliest --yes",
    ],
)
def reset(
    cli: Terminal,
    name: GroupName,
    to: Annotated[
        Any,
        typer.Option(
            "--to",
            parser=parsed_by(parse_reset),
            metavar="POSITION",
            help="earliest, latest, 10m (ago), a time, bookmark:NAME, or 0=120,1=98 by shard.",
        ),
    ],
    shards: Annotated[
        list[int] | None, option("--shard", "Only this shard; repeat for more.")
    ] = None,
    dry_run: Annotated[
        bool, option("--dry-run", "Show what would change without changing it.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Reset the offsets of a group. Active members' uncommitted reads are discarded."""
    handle = cli.client.group(name)
    plan = handle.reset(**to, shards=shards or None, dry_run=True)
    if dry_run:
        cli.out.show(to_row(plan), shards=RESETS)
        return
    moved = sum(1 for shard in plan.shards if shard.before != shard.after)
    confirm(cli, f"Group {name} will read from other offsets in {moved} shards.", name, yes=yes)
    done = handle.reset(**to, shards=shards or None)
    cli.out.show(to_row(done), shards=RESETS)


@delete_verb(GROUP, GroupNames, "millstream group rm billing audit --yes")
def remove(cli: Terminal, name: str) -> str:
    """Delete groups, their offsets and bookmarks."""
    members = len(cli.client.group(name).details().members)
    return f"Group {name}, its offsets and bookmarks will be deleted; it has {members} members."
