"""`millstream mirror`: copies of another deployment's streams and queues."""

from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli.errors import CliError
from api.cli.io.stdin import read_text_file
from api.cli.manifests.edit_verb import edit_verb
from api.cli.shell.definitions import Definition, delete_verb, pause_verbs, put_verbs
from api.cli.shell.operations import JsonBody
from api.cli.shell.options import Prefix, Settings, Yes, fields, option
from api.cli.shell.output import Column, table
from api.cli.shell.prompts import confirm
from api.cli.shell.terminal import Terminal, noun, verb

mirror = noun()

MIRRORS = table(
    "name", Column("from.url", "from"), "streams", "queues", "paused", "promoted_at", "changed_at"
)
SHARDS = table(
    "stream", "shard", "lag_records", "lag_seconds", "copied", "skipped", "ended", "failure"
)

QUEUES = table("queue", "lag_messages", "lag_seconds", "copied", "failure")

ORIGINS = {
    "fenced": "Its streams and queues are read-only in the other deployment.",
    "unreachable": "The other deployment was not reached: stop its writers.",
    "refused": "The mirror's key may not make the other deployment read-only: stop its writers.",
    "ignored": "The other deployment was left as it is.",
}
GROUPS = table("group", "stream", "state", "moved_at", "failure")

Name = Annotated[str, typer.Argument(help="Mirror.")]
Names = Annotated[list[str], typer.Argument(help="Mirrors.")]


def _key(path: Path | None) -> str | None:
    """Read the key of a file; `-` is standard input."""
    return None if path is None else read_text_file(path, "key").strip()


def _configuration(
    origin: Annotated[str, typer.Argument(help="Address of the other deployment.")],
    streams: Annotated[
        list[str] | None,
        option("--stream", "Streams to copy, with * for anything; repeat.", "PATTERN"),
    ] = None,
    queues: Annotated[
        list[str] | None,
        option("--queue", "Queues to copy, with * for anything; repeat.", "PATTERN"),
    ] = None,
    key_file: Annotated[
        Path | None,
        option(
            "--key-file",
            "File with an API key of the other deployment; - reads standard input.",
            "FILE",
        ),
    ] = None,
    groups: Annotated[
        bool | None,
        option(
            "--groups/--no-groups",
            "Create the consumer groups of the streams, and move their offsets.",
        ),
    ] = None,
    follow_definitions: Annotated[
        bool | None,
        option(
            "--follow-definitions/--no-follow-definitions",
            "Apply later changes of the settings of streams and groups as well.",
        ),
    ] = None,
    set_: Settings = None,
) -> dict[str, Any]:
    configured = fields(
        set_,
        streams=streams or None,
        queues=queues or None,
        groups=groups,
        follow_definitions=follow_definitions,
    )
    return {"from": fields(None, url=origin, key=_key(key_file)), **configured}


MIRROR = Definition(mirror, "Mirror", Name, "mirrors.{}_mirror", _configuration)

put_verbs(
    MIRROR,
    create=[
        "millstream mirror create eu https://eu.example.com --stream 'eu.*' --key-file eu.key",
    ],
    apply=["millstream mirror apply eu https://eu.example.com --stream 'eu.*' --dry-run"],
)


edit_verb(MIRROR, "millstream mirror edit eu")


@verb(mirror, "ls", examples=["millstream mirror ls"])
def list_mirrors(cli: Terminal, prefix: Prefix = "") -> None:
    """List mirrors."""
    cli.out.rows(cli.pages("mirrors.list_mirrors", prefix=prefix), MIRRORS)


@verb(mirror, "show", examples=["millstream mirror show eu"])
def show(cli: Terminal, name: Name) -> None:
    """Show the settings and lag of a mirror."""

    definition = cli.call("mirrors.get_mirror", name)
    stats = cli.call("mirrors.get_mirror_stats", name)
    counts = {part: len(stats[part]) for part in ("shards", "queues", "groups")}
    cli.out.show({**definition, "stats": {**stats, **counts}})


@verb(mirror, "lag", examples=["millstream mirror lag eu"])
def lag(cli: Terminal, name: Name) -> None:
    """Show the lag of each shard of a mirror."""

    stats = cli.call("mirrors.get_mirror_stats", name)
    cli.out.rows(iter(stats["shards"]), SHARDS)


@verb(mirror, "queues", examples=["millstream mirror queues eu"])
def queues(cli: Terminal, name: Name) -> None:
    """Show the lag of each queue of a mirror."""

    stats = cli.call("mirrors.get_mirror_stats", name)
    cli.out.rows(iter(stats["queues"]), QUEUES)


@verb(mirror, "groups", examples=["millstream mirror groups eu"])
def groups(cli: Terminal, name: Name) -> None:
    """Show the groups of a mirror."""

    stats = cli.call("mirrors.get_mirror_stats", name)
    cli.out.rows(iter(stats["groups"]), GROUPS)


@verb(
    mirror,
    "promote",
    examples=[
        "millstream mirror promote eu --yes",
        "millstream mirror promote eu --force --yes",
    ],
)
def promote(
    cli: Terminal,
    name: Name,
    yes: Yes = False,
    wait: Annotated[
        float | None,
        option("--wait", "Maximum time to copy the last records in; 20 by default.", "SECONDS"),
    ] = None,
    force: Annotated[
        bool, option("--force", "Promote the mirror although records are missing.")
    ] = False,
    no_fence: Annotated[
        bool, option("--no-fence", "Leave the other deployment as it is, and its writers.")
    ] = False,
) -> None:
    """Stop a mirror permanently.

    Its streams and queues are independent of the other deployment from then on. There they are made read-only first, if it can
    be reached and the mirror's key may do it, and the last records are copied.
    """
    lagging = cli.call("mirrors.get_mirror_stats", name)
    seconds, records = lagging["lag_seconds"], lagging["lag_records"]
    behind = f"It is {seconds:g} s and {records} records behind."
    confirm(cli, f"Mirror {name} will never copy again. {behind}", name, yes=yes)
    fence = False if no_fence else None
    body = fields(None, wait_seconds=wait, force=force or None, fence=fence)
    promoted = cli.call("mirrors.promote_mirror", name, body=JsonBody(body))
    if promoted["promoted_at"] is None:
        raise CliError(
            f"mirror {name} is not promoted: records are missing. The other deployment is read-only; repeat, or use --force"
        )
    cli.out.done(f"Mirror {name} promoted. {ORIGINS[promoted['origin']]}", promoted)


pause_verbs(
    MIRROR,
    pause="Pause a mirror. It continues where it was when it is resumed.",
    resume="Resume a paused mirror.",
    example="eu",
)


@delete_verb(MIRROR, Names, "millstream mirror rm eu --yes")
def remove(cli: Terminal, name: str) -> str:
    """Delete mirrors. Their streams and queues are kept; queues stay read-only."""
    stats = cli.call("mirrors.get_mirror_stats", name)
    copied = sum(one["copied"] for part in ("shards", "queues") for one in stats[part])
    return f"Mirror {name} will be deleted; the {copied} records that it copied are kept."
