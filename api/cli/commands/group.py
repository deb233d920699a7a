"""`millstream group`: consumer groups, their lag and resets."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from api.cli.shell.options import (
    GroupName,
    GroupNames,
    OnlyNew,
    Prefix,
    Settings,
    StreamName,
    Yes,
    fields,
    now,
)
from api.cli.shell.output import Column, table, to_row
from api.cli.shell.parsers import EARLIEST, LATEST, parse_offsets, parse_time
from api.cli.shell.prompts import confirm
from api.cli.shell.terminal import Terminal, noun, parsed_by, verb

group = noun("Consumer groups.")

GROUPS = table("name", "stream", "kind", "start", Column("created_at", "created"))
MEMBERS = table("member", "assigned", "disconnected", "static", "heartbeat_at")
SHARDS = table("shard", "member", "committed", "finished")
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


@verb(
    group,
    "create",
    examples=[
        "millstream group create billing clicks",
        "millstream group create audit clicks --start latest",
    ],
)
def create(
    cli: Terminal,
    name: GroupName,
    stream: StreamName,
    start: Annotated[
        GroupStartOption | None, typer.Option("--start", help="Start position.")
    ] = None,
    simple: Annotated[
        bool,
        typer.Option(
            "--simple", help="Store offsets only; readers distribute the shards themselves."
        ),
    ] = False,
    new: OnlyNew = False,
    set_: Settings = None,
) -> None:
    """Create a consumer group for a stream, or change its timeouts."""
    config = fields(set_, kind="simple" if simple else None, start=start)
    made = cli.client.group(name).create(stream, only_new=new, **config)
    cli.out.done(f"Consumer group {name} on stream {stream} created or updated.", to_row(made))


@verb(group, "ls", examples=["millstream group ls"])
def list_groups(cli: Terminal, prefix: Prefix = "") -> None:
    """List consumer groups."""
    cli.out.rows(map(to_row, cli.client.groups(prefix)), GROUPS)


@verb(group, "show", examples=["millstream group show billing"])
def show(cli: Terminal, name: GroupName) -> None:
    """Show a group, its members and their shards."""
    cli.out.show(to_row(cli.client.group(name).details()), members=MEMBERS, shards=SHARDS)


@verb(
    group,
    "lag",
    examples=["millstream group lag billing", "millstream group lag billing -o json | jq .records"],
)
def lag(cli: Terminal, name: GroupName) -> None:
    """Show the lag of a group in records and time, by shard."""
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
            metavar="PLACE",
            help="earliest, latest, 10m (ago), a time, bookmark:NAME, or 0=120,1=98 by shard.",
        ),
    ],
    shards: Annotated[
        list[int] | None, typer.Option("--shard", help="Only this shard; repeat for more.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change without changing it.")
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


@verb(group, "rm", examples=["millstream group rm billing audit --yes"])
def remove(cli: Terminal, names: GroupNames, yes: Yes = False) -> None:
    """Delete groups with their offsets and bookmarks."""
    for name in names:
        members = len(cli.client.group(name).details().members)
        warning = (
            f"Group {name}, its offsets and bookmarks will be deleted; it has {members} members."
        )
        confirm(cli, warning, name, yes=yes)
        cli.client.group(name).delete()
        cli.out.done(f"Deleted group {name}.", {"name": name, "deleted": True})
