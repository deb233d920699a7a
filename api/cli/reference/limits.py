"""Reference page of every limit, with its value and its reason, read from the source."""

import ast
import inspect
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from api.cli.reference.markdown import code, page, table
from storage.domain import limits

INTRO = """\
What you meet first: a message has at most 1 MiB, a record 1 MiB (10 MiB where its stream allows it), a call 1,000 messages or records and 16 MiB, a name 80 characters. A receive takes up to 1,000 messages and waits up to 20 seconds; a visibility timeout lasts up to
12 hours, a delay up to ten years. A stream has up to 1,024 shards. The number of queues and streams has no limit but memory.

Below are all limits, as `storage/domain/limits.py` has them, with the reason where there is one. `_DEFAULT` is what holds if you say nothing, `_MAX` the most you may ask for. Many are internal: they bound the work of one step, and nobody can change them. What you can
change for a deployment are [settings](settings.md), for a tenant [quotas](../how-to/quotas.md).
"""
DURATIONS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms"))
SIZES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
RING = 1 << 128  # of hash keys
_UNITS = re.compile(r"^(?:SECOND|MINUTE|HOUR|DAY)_MS$|^[KM]IB$")


class Limit(NamedTuple):
    """One limit: its heading, and its reason."""

    heading: str
    name: str
    value: Any
    why: str


def limits_page() -> str:
    """Return the page of every limit, by heading."""
    parts: list[str] = []
    entries = list(all_limits())
    for heading in dict.fromkeys(entry.heading for entry in entries):
        rows = [
            (code(entry.name), spelled(entry.name, entry.value), entry.why)
            for entry in entries
            if entry.heading == heading
        ]
        parts.append(f"## {heading}\n\n{table(('limit', 'is', 'why'), rows)}")
    return page("Limits", INTRO, *parts)


def all_limits() -> Iterator[Limit]:
    """Yield the limits in the order in which they are declared."""
    source = inspect.getsource(limits)
    lines, seen = source.splitlines(), set()
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        name = node.targets[0].id
        if _UNITS.match(name) or name in seen:
            continue
        seen.add(name)
        declared = "\n".join(lines[node.lineno - 1 : node.end_lineno])
        _, _, why = declared.partition("# ")
        yield Limit(_heading(lines, node.lineno), name, getattr(limits, name), _sentence(why))


def _heading(lines: list[str], line: int) -> str:
    """Return the last comment line above a block."""
    return next(preceding for preceding in reversed(lines[:line]) if preceding.startswith("# "))[
        2:
    ].rstrip(":")


def _sentence(why: str) -> str:
    """Return a comment's first line: a closing bracket may stand on the next."""
    return why.partition("\n")[0].strip()


def spelled(name: str, value: Any) -> str:
    """Format a value with the unit that its name indicates."""
    if isinstance(value, tuple):
        return ", ".join(spelled(name, item) for item in value)
    if name.endswith("_S") and isinstance(value, int):
        return f"{value} s"
    if "_MS" in name and value == int(value):
        return _in_units(int(value), DURATIONS)
    if "BYTES" in name and "PER_SECOND" not in name and isinstance(value, int):
        return _in_units(value, SIZES)
    if isinstance(value, int) and value > RING // 1_000_000:
        return f"1/{RING // value:,} of the ring"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _in_units(value: int, units: tuple[tuple[int, str], ...]) -> str:
    size, unit = next(one for one in units if value % one[0] == 0)
    return f"{value // size:,} {unit}"
