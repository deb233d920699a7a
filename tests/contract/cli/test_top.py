"""`millstream top`: orders, one table, and the live screen in a terminal."""

import os
import pty
import select
import subprocess
import sys
import time
from typing import Any

import pytest

from api.cli.commands.top import ActivityOrder, in_order, queue_row, stream_row
from tests.cli_commands import millstream
from tests.conditions import PATIENCE_S

pytestmark = pytest.mark.usefixtures("at_the_service")

EARLY, LATE = "2026-01-31T11:00:00.000Z", "2026-01-31T12:00:00.000Z"


def row(name: str, **values: Any) -> dict[str, Any]:
    empty = dict.fromkeys(("in_per_second", "out_per_second", "waiting", "oldest_at"))
    return {"name": name, "kind": "queue", **empty, **values}


@pytest.mark.parametrize(
    ("order", "names"),
    [
        (ActivityOrder.IN, "cabd"),
        (ActivityOrder.OUT, "bacd"),
        (ActivityOrder.WAITING, "dabc"),
        (ActivityOrder.AGE, "bdac"),
        (ActivityOrder.NAME, "abcd"),
    ],
)
def test_rows_are_sorted_by_key_and_name(order, names):
    rows = [
        row("d", waiting=9, oldest_at=LATE),
        row("c", in_per_second=2.5),
        row("a", in_per_second=1.0, out_per_second=1.0),
        row("b", out_per_second=3.0, oldest_at=EARLY),
    ]

    assert [each["name"] for each in in_order(rows, order)] == list(names)


def test_object_without_measurement_has_an_empty_row():
    assert queue_row({"name": "a", "measurement": None}) == row("a")
    assert stream_row({"name": "a", "measurement": None}) == {**row("a"), "kind": "stream"}


def test_top_prints_once_without_terminal(name):
    millstream("queue", "create", name)
    millstream("stream", "create", f"s-{name}")

    table = millstream("top", "--prefix", name)
    rows = millstream("top", "--once", "--sort", "name", "-n", "1000", "-o", "json").json

    assert table.out.splitlines()[0].split() == [
        "name",
        "kind",
        "in/s",
        "out/s",
        "waiting",
        "oldest",
    ]
    assert table.out.splitlines()[1].split()[:2] == [name, "queue"]
    assert (name, "queue") in [(each["name"], each["kind"]) for each in rows]
    assert (f"s-{name}", "stream") in [(each["name"], each["kind"]) for each in rows]
    assert [each["name"] for each in rows] == sorted(each["name"] for each in rows)


def read_until(descriptor: int, text: bytes) -> bytes:
    """Read what a terminal shows until a text appears."""
    output, deadline = b"", time.monotonic() + PATIENCE_S
    while text not in output:
        assert time.monotonic() < deadline, output
        if select.select([descriptor], [], [], 0.1)[0]:
            try:
                output += os.read(descriptor, 1 << 16)
            except OSError:  # the other side is closed
                break
    return output


def test_live_screen_follows_keys_and_is_left_as_it_was(name):
    millstream("queue", "create", name)
    words = [sys.executable, "-m", "api.cli", "top", "--prefix", name, "--every", "1m"]
    terminal, side = pty.openpty()
    process = subprocess.Popen(words, stdin=side, stdout=side, stderr=side)
    os.close(side)

    first = read_until(terminal, b"sorted by in")
    os.write(terminal, b"w")
    second = read_until(terminal, b"sorted by waiting")
    os.write(terminal, b"?q")
    last = read_until(terminal, b"\x1b[?1049l")
    code = process.wait(PATIENCE_S)
    os.close(terminal)

    assert b"\x1b[?1049h" in first
    assert name.encode() in first
    assert name.encode() in second
    assert b"sorted by waiting" in last
    assert code == 0
