"""`millstream top`: the busiest queues and streams."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import chain
from typing import Annotated, Any

import typer

from api.cli.shell.options import Prefix, duration, option
from api.cli.shell.output import Column, Output, Row, show_age_of, table
from api.cli.shell.terminal import Terminal, noun, verb

activity = noun()

ROWS = table(
    "name",
    "kind",
    Column("in_per_second", "in/s"),
    Column("out_per_second", "out/s"),
    "waiting",
    Column("oldest_at", "oldest", show_age_of),
)
LIMIT = 50
MARGIN = 3  # lines of a screen that are not rows
OLDEST_LAST = "9999"  # after every time


class ActivityOrder(StrEnum):
    """Order of the rows."""

    IN = "in"
    OUT = "out"
    WAITING = "waiting"
    AGE = "age"
    NAME = "name"


KEYS = {order.value[0]: order for order in ActivityOrder}
HELP = "sorted by {order} · keys: i in, o out, w waiting, a age, n name, q quit"


@verb(
    activity,
    "top",
    examples=["millstream top --once", "millstream top --once --sort waiting -n 5 -o json"],
)
def top(
    cli: Terminal,
    prefix: Prefix = "",
    sort: Annotated[
        ActivityOrder, option("--sort", "First order; a key changes it.")
    ] = ActivityOrder.IN,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, help="Maximum number.")] = LIMIT,
    every: Annotated[Any, duration("--every", help="Time between two updates.")] = 5.0,
    once: Annotated[bool, option("--once", "Print the table once.")] = False,
) -> None:
    """Show the busiest queues and streams.

    Messages and records that arrive and leave per second, those that wait, and since when: measured every ten seconds. Updates
    until you press q; i, o, w, a and n sort by arriving, leaving, waiting, age and name. Without a terminal, prints once.
    """
    if once or not (cli.out.for_people and cli.is_for_a_person and cli.out.is_terminal):
        cli.out.rows(in_order(_rows(cli, prefix), sort)[:limit], ROWS)
        return
    _follow(cli, prefix, sort, limit, every)


def _follow(cli: Terminal, prefix: str, sort: ActivityOrder, limit: int, every_s: float) -> None:
    from api.cli.shell.live import lines_max, run_live

    order = sort

    def draw(out: Output) -> None:
        rows = in_order(_rows(cli, prefix), order)
        out.rows(rows[: min(limit, lines_max() - MARGIN)], ROWS)
        out.line(HELP.format(order=order).encode())

    def press(key: str) -> None:
        nonlocal order
        order = KEYS.get(key, order)

    run_live(cli, draw, every_s=every_s, press=press)


def in_order(rows: Iterable[Row], order: ActivityOrder) -> list[Row]:
    """Sort rows: the largest, or the oldest, first; then by name."""
    by_name = sorted(rows, key=lambda row: (row["name"], row["kind"]))
    match order:
        case ActivityOrder.NAME:
            return by_name
        case ActivityOrder.AGE:
            return sorted(by_name, key=lambda row: row["oldest_at"] or OLDEST_LAST)
        case ActivityOrder.WAITING:
            return sorted(by_name, key=lambda row: -int(row["waiting"] or 0))
        case ActivityOrder.IN | ActivityOrder.OUT:
            return sorted(by_name, key=lambda row: -float(row[f"{order}_per_second"] or 0))


def _rows(cli: Terminal, prefix: str) -> Iterator[Row]:
    queues = cli.pages("queues.list_queues", prefix=prefix, measured=True)
    streams = cli.pages("streams.list_streams", prefix=prefix, measured=True)
    return chain(map(queue_row, queues), map(stream_row, streams))


def queue_row(queue: Row) -> Row:
    """Return the row of a queue with its measurement."""
    measurement = queue["measurement"] or {}
    return _row(
        queue["name"],
        "queue",
        measurement.get("sent_per_second"),
        measurement.get("acknowledged_per_second"),
        measurement.get("ready"),
        measurement.get("oldest_ready_at"),
    )


def stream_row(stream: Row) -> Row:
    """Return the row of a stream; those that wait are the lag of the group furthest behind."""
    measurement = stream["measurement"] or {}
    return _row(
        stream["name"],
        "stream",
        measurement.get("records_in_per_second"),
        None,
        measurement.get("lag_records"),
        measurement.get("oldest_unread_at"),
    )


def _row(*values: Any) -> Row:
    names = ("name", "kind", "in_per_second", "out_per_second", "waiting", "oldest_at")
    return dict(zip(names, values, strict=True))
