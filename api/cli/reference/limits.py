"""Every limit, with its value and its reason, as the module that has them says it."""

import ast
import inspect
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from api.cli.reference.markdown import code, page, table
from storage.domain import limits

INTRO = """\
Every limit has a name, and most a reason; they stand in `storage/domain/limits.py`. What a queue, a stream or a namespace may be told is never more than the limit of that name. Those of a deployment are
[settings](settings.md), those of a tenant [quotas](../how-to/quotas.md).
"""
DURATIONS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms"))
SIZES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
_UNITS = re.compile(r"^(?:SECOND|MINUTE|HOUR|DAY)_MS$|^[KM]IB$")


class Limit(NamedTuple):
    """One limit: the heading it stands below, and why it is so."""

    heading: str
    name: str
    value: Any
    why: str


def limits_page() -> str:
    """Every limit, by heading."""
    parts: list[str] = []
    known = list(all_limits())
    for heading in dict.fromkeys(one.heading for one in known):
        rows = [
            (code(one.name), spelled(one.name, one.value), one.why)
            for one in known
            if one.heading == heading
        ]
        parts.append(f"## {heading}\n\n{table(('limit', 'is', 'why'), rows)}")
    return page("Limits", INTRO, *parts)


def all_limits() -> Iterator[Limit]:
    """The limits in the order in which they are declared."""
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
    """The comment that stands alone above a block."""
    return next(one for one in reversed(lines[:line]) if one.startswith("# "))[2:].rstrip(":")


def _sentence(why: str) -> str:
    """A comment's first line: a closing bracket may stand on the next."""
    return why.partition("\n")[0].strip()


def spelled(name: str, value: Any) -> str:
    """A value with the unit that its name tells."""
    if isinstance(value, tuple):
        return ", ".join(spelled(name, one) for one in value)
    if "_MS" in name and isinstance(value, int):
        return _in_units(value, DURATIONS)
    if "BYTES" in name and "PER_SECOND" not in name and isinstance(value, int):
        return _in_units(value, SIZES)
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _in_units(value: int, units: tuple[tuple[int, str], ...]) -> str:
    size, unit = next(one for one in units if value % one[0] == 0)
    return f"{value // size:,} {unit}"
