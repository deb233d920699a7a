"""Sections of a description: problems first, then counts, rates and settings."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from api.cli.shell.output import OutputTable, Row
from api.cli.shell.terminal import Terminal

PROBLEMS = "problems"
NO_PROBLEMS = "none"
IDENTITY = ("name", "paused", "version", "created_at", "changed_at")
NOT_A_SETTING = frozenset({*IDENTITY, "enabled"})


class Section(NamedTuple):
    """Part of a description. `content`: sentences, rows in the form of a table, or fields."""

    title: str
    content: Sequence[str] | Sequence[Row] | Mapping[str, Any]
    shape: OutputTable | None = None


def describe(cli: Terminal, row: Row, problems: list[str], *sections: Section) -> None:
    """Print an object: the row with its problems for programs, sections for people."""
    if not cli.out.for_people:
        cli.out.show({**row, PROBLEMS: problems})
        return
    cli.out.fields({name: row[name] for name in IDENTITY if name in row})
    cli.out.section(PROBLEMS, problems or [NO_PROBLEMS])
    for section in sections:
        if section.content:
            cli.out.section(section.title, section.content, section.shape)


def settings_section(row: Row, *excluded: str) -> Section:
    """Return the section of the settings: what a definition has beside its identity."""
    names = NOT_A_SETTING.union(excluded)
    return Section("settings", {name: value for name, value in row.items() if name not in names})


def without_empty(fields: Row) -> Row:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value not in (None, "", [])}


def measurement_of(cli: Terminal, listing: str, name: str) -> Row | None:
    """Return the latest measurement of an object; None without one, or without permission."""

    def first() -> Iterable[Row]:
        return islice(cli.pages(listing, prefix=name, limit=1, measured=True), 1)

    listed = [row for row in rows_if_allowed(first) if row["name"] == name]
    return listed[0]["measurement"] if listed else None


def rows_if_allowed(call: Callable[[], Iterable[Row]]) -> list[Row]:
    """Return the rows of a call; none if the caller lacks its permission."""
    from millstream_client.errors import Forbidden

    try:
        return list(call())
    except Forbidden:
        return []


def measured_groups(cli: Terminal, stream: str) -> Iterator[Row]:
    """Yield the groups of a stream with their measurements."""
    groups = cli.pages("groups.list_consumer_groups", measured=True)
    return (group for group in groups if group["stream"] == stream)
