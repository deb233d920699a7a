"""Reference page of every limit, with its value and its reason, read from the source."""

import ast
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

from api.cli.reference.markdown import code, page, table
from storage.domain.limits.access import audit, credentials, quotas
from storage.domain.limits.integrations import mirrors, sources, webhooks
from storage.domain.limits.jobs import jobs, queries, replays, sql, views
from storage.domain.limits.messaging import (
    filters,
    groups,
    idempotency,
    messages,
    queues,
    requests,
    streams,
    topics,
)
from storage.domain.limits.operations import backups, maintenance, observability, processes
from storage.domain.limits.protocols import feeds, http, websocket
from storage.domain.limits.stores import archive, catalog, hot_store, logs, postgres, replication

INTRO = """\
The limits you are most likely to meet: 1 MiB per message; 1 MiB per record (10 MiB if its stream allows it); 1,000 messages or records and 16 MiB per call; 80 characters per name. A receive returns up to 1,000 messages and waits up to 20 seconds; a visibility timeout is up to
12 hours, the delay of a nack up to two days, that of a message up to ten years. A stream has up to 1,024 shards. The number of queues and streams is limited only by memory.

Below are all limits as defined in `storage/domain/limits/`, with the reason where there is one. `_DEFAULT` is the value used if you specify none, `_MAX` the maximum you can specify. Many limits are internal: they bound the work of one step and cannot be changed. You can
change [settings](settings.md) for a deployment and [quotas](../how-to/quotas.md) for a tenant.
"""
DURATIONS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"), (1, "ms"))
SIZES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
RING = 1 << 128  # of hash keys
MODULES = (  # in the order of the page
    messages,
    queues,
    streams,
    groups,
    idempotency,
    filters,
    topics,
    requests,
    http,
    websocket,
    feeds,
    webhooks,
    sources,
    mirrors,
    jobs,
    replays,
    sql,
    views,
    queries,
    credentials,
    quotas,
    audit,
    logs,
    archive,
    catalog,
    hot_store,
    replication,
    postgres,
    maintenance,
    backups,
    processes,
    observability,
)


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
            (code(entry.name), format_value(entry.name, entry.value), entry.why)
            for entry in entries
            if entry.heading == heading
        ]
        parts.append(f"## {heading}\n\n{table(('limit', 'is', 'why'), rows)}")
    return page("Limits", INTRO, *parts)


def all_limits() -> Iterator[Limit]:
    """Yield the limits module by module, in the order in which they are declared."""
    for module in MODULES:
        yield from _limits_of(module)


def _limits_of(module: ModuleType) -> Iterator[Limit]:
    source = inspect.getsource(module)
    lines = source.splitlines()
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        name = node.targets[0].id
        declared = "\n".join(lines[node.lineno - 1 : node.end_lineno])
        _, _, why = declared.partition("# ")
        yield Limit(_heading(lines, node.lineno), name, getattr(module, name), _sentence(why))


def _heading(lines: list[str], line: int) -> str:
    """Return the last comment line above a block."""
    return next(preceding for preceding in reversed(lines[:line]) if preceding.startswith("# "))[
        2:
    ].rstrip(":")


def _sentence(why: str) -> str:
    """Return a comment's first line: a closing bracket may stand on the next."""
    return why.partition("\n")[0].strip()


def format_value(name: str, value: Any) -> str:
    """Format a value with the unit that its name indicates."""
    if isinstance(value, tuple):
        return ", ".join(format_value(name, item) for item in value)
    if name.endswith("_S") and isinstance(value, int):
        return f"{value} s"
    if "_MS" in name and "PER_MS" not in name and value == int(value):
        return _in_units(int(value), DURATIONS)
    if "BYTES" in name and "PER_SECOND" not in name and isinstance(value, int):
        return _in_units(value, SIZES)
    if isinstance(value, int) and value > RING // 1_000_000:
        return f"1/{RING // value:,} of the hash-key range"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _in_units(value: int, units: tuple[tuple[int, str], ...]) -> str:
    size, unit = next(one for one in units if value % one[0] == 0)
    return f"{value // size:,} {unit}"
