"""`millstream replay`: replays of stream records."""

from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from api.cli.errors import CliError, ExitCode
from api.cli.grammar.parsers import StreamPosition
from api.cli.io.match_options import FilterText, Subjects, Where, match_of
from api.cli.shell.options import JobStateOption, Limit, StreamName, fields, option, position_option
from api.cli.shell.output import Column, Row, table, to_row
from api.cli.shell.progress import JobNotices, progress
from api.cli.shell.terminal import LONG_S, Terminal, noun, verb

if TYPE_CHECKING:
    from millstream_client import Replay
    from millstream_client.core.params import TargetConfigParams

replay = noun()

REPLAYS = table("id", "stream", "to", "state", "failure", Column("created_at", "created"))
PARTS = table("shard", "first", "end", "position", "read", "sent", "expired", "done")
REACHES = table("shard", "first", "end")

Name = Annotated[str, typer.Argument(help="Replay id.")]
Bound = Annotated[Any, position_option("--from", help="earliest, 10m (ago), or a time.")]
StateFilter = Annotated[JobStateOption | None, option("--state", "Only replays in this state.")]


class ReplayOrderOption(StrEnum):
    """Order to preserve in the target."""

    SHARD = "shard"
    KEY = "key"
    TIME = "time"
    NONE = "none"


@verb(
    replay,
    "start",
    examples=[
        "millstream replay start clicks --to-stream copies --from 10m --dry-run",
        "millstream replay start clicks --to-queue orders --id again --rate 500 --no-wait",
    ],
)
def start(
    cli: Terminal,
    stream: StreamName,
    to_stream: Annotated[str | None, option("--to-stream", "Target stream.", "STREAM")] = None,
    to_queue: Annotated[str | None, option("--to-queue", "Target queue.", "QUEUE")] = None,
    from_: Bound = None,
    until: Annotated[Any, position_option("--until", help="10m (ago), or a time.")] = None,
    keys: Annotated[
        list[str] | None, option("--key", "Only records of this key; repeat for more.", "KEY")
    ] = None,
    subjects: Subjects = None,
    filter_: FilterText = None,
    where: Where = None,
    order: Annotated[
        ReplayOrderOption | None, option("--order", "Order to preserve in the target.")
    ] = None,
    rate: Annotated[float | None, option("--rate", "Records per second.")] = None,
    speed: Annotated[
        float | None, option("--speed", "Multiple of the original arrival rate.")
    ] = None,
    limit: Limit = None,
    id_: Annotated[
        str | None, option("--id", "Client-chosen id; makes the command idempotent.", "ID")
    ] = None,
    dry_run: Annotated[
        bool, option("--dry-run", "Show what would change without changing it.")
    ] = False,
    wait: Annotated[
        bool, typer.Option(help="Wait until it completes; Ctrl-C stops waiting, not the replay.")
    ] = True,
) -> None:
    """Replay records to a stream or a queue."""
    if (to_stream is None) == (to_queue is None):
        raise CliError("specify one of --to-stream and --to-queue", ExitCode.USAGE)
    target: TargetConfigParams = {"stream": to_stream, "queue": to_queue}
    pacing = fields(None, records_per_second=rate, speed=speed)
    config = fields(None, from_=bound(from_, "--from"), to=bound(until, "--until"), order=order)
    config |= fields(None, max_records=limit, pacing=pacing or None)
    selected = fields(None, keys=keys, match=match_of(subjects, filter_, where))
    config |= {"filter": selected} if selected else {}
    if dry_run:
        plan = to_row(cli.client.replays.plan(stream, target, **config))
        cli.out.show(plan, shards=REACHES)
        return
    begun = cli.client.replays.start(stream, target, id=id_, **config)
    if wait:
        _watch(cli, begun.name)
    else:
        status = to_row(begun.status())
        JobNotices(cli.print_notice).report(status["failure"], status["waiting_for"])
        cli.out.done(f"Started replay {begun.name}.", status)


def bound(position: StreamPosition | None, option: str) -> Row | None:
    """Parse a bound of the range; None for that of the stream. Raises CliError."""
    if position is None or position.end == "earliest":
        return None
    if position.time is None:
        raise CliError(f"{option} must be 10m (ago) or a time", ExitCode.USAGE)
    return {"time": position.time.isoformat()}


@verb(replay, "ls", examples=["millstream replay ls"])
def list_replays(cli: Terminal, state: StateFilter = None, limit: Limit = 50) -> None:
    """List replays, newest first."""
    replays = map(to_row, islice(cli.client.all_replays(state), limit))
    cli.out.rows(map(_with_target, replays) if cli.out.for_people else replays, REPLAYS)


def _with_target(row: Row) -> Row:
    target = row["target"]
    return {
        **row,
        "to": f"queue {target['queue']}" if target.get("queue") else f"stream {target['stream']}",
    }


@verb(replay, "show", examples=["millstream replay show again"])
def show(cli: Terminal, name: Name) -> None:
    """Show a replay, its request and its progress."""
    cli.out.show(to_row(cli.client.replay(name).status()), progress=None, shards=PARTS)


@verb(replay, "pause", examples=["millstream replay pause again"])
def pause(cli: Terminal, name: Name) -> None:
    """Pause a replay."""
    cli.out.done(f"Pausing replay {name}.", to_row(cli.client.replay(name).pause()))


@verb(replay, "resume", examples=["millstream replay resume again"])
def resume(cli: Terminal, name: Name) -> None:
    """Resume a paused replay."""
    cli.out.done(f"Resumed replay {name}.", to_row(cli.client.replay(name).resume()))


@verb(replay, "cancel", examples=["millstream replay cancel again"])
def cancel(cli: Terminal, name: Name) -> None:
    """Cancel a replay. Records already sent are kept."""
    cli.out.done(f"Cancelling replay {name}.", to_row(cli.client.replay(name).cancel()))


@verb(replay, "retry")
def retry(cli: Terminal, name: Name) -> None:
    """Retry a failed replay from where it stopped."""
    cli.out.done(f"Retrying replay {name}.", to_row(cli.client.replay(name).retry()))


@verb(replay, "watch")
def watch(cli: Terminal, name: Name) -> None:
    """Show the progress until a replay completes.

    Fails if the replay fails.
    """
    cli.client.replay(name).status()  # raises if it does not exist
    _watch(cli, name)


def _watch(cli: Terminal, name: str) -> None:
    last = _until_over(cli, cli.connect(LONG_S).replay(name))
    sent = last["progress"]["sent"]
    cli.out.done(f"Replay {name} is {last['state']}: {sent} records sent.", last)
    if last["state"] == "failed":
        raise CliError(f"replay {name} failed: {last['failure']}")
    if last["state"] == "cancelled":
        raise CliError(f"replay {name} was cancelled after {sent} records", ExitCode.PARTIAL)


def _until_over(cli: Terminal, replay: "Replay") -> Row:
    from millstream_client.sync.replays import OVER

    notices = JobNotices(cli.print_notice)
    with progress(cli, "replayed:") as shown:
        for status in replay.watch():
            shown.to(status.progress.read, status.progress.records or None)
            if status.state not in OVER:
                notices.report(status.failure, status.waiting_for)
    return to_row(status)
