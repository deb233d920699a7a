"""`millstream queue`: dead letters, redrives and moves."""

import time
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli.errors import CliError
from api.cli.io.browsed_rows import BODY, with_text
from api.cli.io.message_filter import (
    BodyFilter,
    GroupFilter,
    HeaderFilter,
    SentSince,
    SentUntil,
    TextFilter,
    filter_query,
)
from api.cli.shell.options import Limit, QueueName, fields, option
from api.cli.shell.output import table, to_row
from api.cli.shell.progress import progress
from api.cli.shell.terminal import LONG_S, Terminal, noun, verb

if TYPE_CHECKING:
    from millstream_client.core.models.move_out import MoveOut

letters = noun()

POLL_S = 0.5
IN_PROGRESS = frozenset({"running", "cancelling"})

LETTERS = table("id", "died_at", "reason", "receive_count", "group", BODY)
REASONS = table("reason", "count", "first_died_at", "last_died_at")

Wait = Annotated[bool, typer.Option(help="Wait until it completes.")]
Target = Annotated[
    str | None, option("--to", "Target queue; default: the source queue of each message.", "QUEUE")
]
Rate = Annotated[int | None, typer.Option("--rate", min=1, help="Messages per second.")]


@verb(
    letters,
    "dead-letters",
    examples=[
        "millstream queue dead-letters orders",
        "millstream queue dead-letters orders --reasons",
        "millstream queue dead-letters orders --reason timeout --where /customer=7",
    ],
)
def dead_letters(
    cli: Terminal,
    name: QueueName,
    reasons: Annotated[bool, option("--reasons", "Count them by reason.")] = False,
    reason: Annotated[str | None, option("--reason", "Only dead letters with this reason.")] = None,
    group: GroupFilter = None,
    header: HeaderFilter = None,
    where: BodyFilter = None,
    text: TextFilter = None,
    since: SentSince = None,
    until: SentUntil = None,
    limit: Limit = 20,
) -> None:
    """List dead letters of a queue, oldest first."""
    if reasons:
        cli.out.rows(map(to_row, cli.client.queue(name).death_reasons()), REASONS)
        return
    conditions = filter_query(
        group=group, header=header, body=where, text=text, from_=since, to=until
    )
    letters = cli.pages("queues.list_dead_letters", name, reason=reason, **conditions)
    cli.out.rows(with_text(cli, islice(letters, limit)), LETTERS)


@verb(
    letters,
    "redrive",
    examples=[
        "millstream queue redrive orders",
        "millstream queue redrive orders --reason timeout --rate 100",
    ],
)
def redrive(
    cli: Terminal,
    name: QueueName,
    ids: Annotated[
        list[str] | None, typer.Argument(help="Only dead letters with these ids.")
    ] = None,
    reason: Annotated[str | None, option("--reason", "Only dead letters with this reason.")] = None,
    group: Annotated[
        str | None, option("--group", "Only dead letters of this message group.", "GROUP")
    ] = None,
    rate: Annotated[
        int | None,
        typer.Option(
            "--rate", min=1, help="Messages per second; the redrive runs in the background."
        ),
    ] = None,
    wait: Wait = True,
) -> None:
    """Redrive dead letters.

    Redrives all of them, or those that match all options.
    """
    from millstream_client.core.models.move_out import MoveOut

    selection = fields(None, messages=ids or None, reason=reason, group=group, per_second=rate)
    done = cli.client.queue(name).redrive(**selection)
    if isinstance(done, MoveOut):
        _follow_move(cli, name, done, wait=wait)
    else:
        cli.out.done(f"Redriven {done.redriven} dead letters of queue {name}.", to_row(done))


@verb(letters, "move")
def move(
    cli: Terminal, name: QueueName, to: Target = None, rate: Rate = None, wait: Wait = True
) -> None:
    """Move ready messages of a dead-letter queue.

    They go to their source queues, or to another queue.
    """
    begun = cli.client.queue(name).move(to, rate)
    _follow_move(cli, name, begun, wait=wait)


def _follow_move(cli: Terminal, name: str, begun: "MoveOut", *, wait: bool) -> None:
    """Wait for the move if requested; Ctrl-C stops waiting, not the move."""
    last = begun
    if wait:
        source = cli.connect(LONG_S).queue(name)
        with progress(cli, "moved:") as shown:
            while str(last.state) in IN_PROGRESS:
                shown.to(last.moved, last.to_move)
                time.sleep(POLL_S)
                last = source.move_status(begun.id)
    verb_ = "are moved" if wait else "will be moved"
    count = last.moved if wait else last.to_move
    cli.out.done(f"{count} messages of queue {name} {verb_} ({last.id}).", to_row(last))
    if str(last.state) == "failed":
        raise CliError(f"the move failed: {last.failure}")
