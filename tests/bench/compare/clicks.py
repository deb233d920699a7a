"""Clicks that the comparison of views counts, and the rows that must come out."""

import json
from collections.abc import Iterable, Iterator
from random import Random
from typing import Any, NamedTuple

PAGES, USERS = 50, 10_000
WINDOW_MS, GRACE_MS = 10_000, 10_000
DELAYED, DELAY_MS_MAX = 0.1, 5_000  # share of clicks that are out of order, within the grace
_SEED = 11

SQL = (
    "select page, window(event_time, '10 seconds').start as since, "
    "count(*) as clicks, sum(ms) as ms, max(n) as newest from c group by 1, 2"
)
COLUMNS = "page string, ms bigint, n bigint"


class Click(NamedTuple):
    """A record: its number from 0, its key, its event time and its data as JSON."""

    number: int
    page: str
    ms: int
    time_ms: int
    data: str


class Total(NamedTuple):
    """The values of a row."""

    clicks: int
    ms: int
    newest: int


Rows = dict[tuple[str, int], Total]
"""Totals by page and start of the window, in milliseconds."""


def generate(first: int, count: int, start_ms: int, step_ms: float) -> Iterator[Click]:
    """Generate clicks with these numbers, the same in each run except for their event times."""
    random = Random(_SEED + first)
    for number in range(first, first + count):
        page = f"/products/{int(PAGES * random.random() ** 2)}"
        ms, user = random.randrange(1, 2_000), random.randrange(USERS)
        delay_ms = random.randrange(DELAY_MS_MAX) if random.random() < DELAYED else 0
        time_ms = start_ms + int((number - first) * step_ms) - delay_ms
        data = {"page": page, "ms": ms, "user": f"u{user}", "n": number}
        yield Click(number, page, ms, time_ms, json.dumps(data, separators=(",", ":")))


def totals(clicks: Iterable[Click]) -> Rows:
    """Compute the rows of these clicks."""
    rows: Rows = {}
    for click in clicks:
        key = click.page, click.time_ms - click.time_ms % WINDOW_MS
        before = rows.get(key, Total(0, 0, -1))
        newest = max(before.newest, click.number)
        rows[key] = Total(before.clicks + 1, before.ms + click.ms, newest)
    return rows


def difference(rows: Rows, expected: Rows) -> str:
    """Describe how rows differ from the expected ones; empty if they do not."""
    if rows == expected:
        return ""
    wrong = sum(rows[key] != total for key, total in expected.items() if key in rows)
    missing, excess = len(expected.keys() - rows.keys()), len(rows.keys() - expected.keys())
    return f"of {len(expected)} rows {missing} are missing, {wrong} wrong, and {excess} too many"


def row_of(page: str, since_ms: int, *values: Any) -> tuple[tuple[str, int], Total]:
    """Return a row and its key."""
    return (page, since_ms), Total(*map(int, values))
