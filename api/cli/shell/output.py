"""Output formats of results: a table for people, JSON or JSON Lines for programs.

Results are rows, dicts in the form that the REST API has. A `OutputTable` selects the fields for people.

    -o table     columns; in a terminal as wide as it is and with colours, elsewhere plain and never truncated
    -o json      one value: a single result is an object, a list an array
    -o ndjson    each item of a list on a line of its own, as it arrives
"""

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from io import StringIO
from typing import Any, BinaryIO

from api.cli.grammar.common_options import OutputFormat
from api.cli.grammar.parsers import show_age
from api.cli.shell.clock import now
from api.config.durations import show_duration

Row = dict[str, Any]
TIMES = ("_at", "_time", "_after", "_arrival", "_since")  # suffixes of the names of times
CALLER_DATA = frozenset({"body", "data", "headers", "tags", "request"})
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{3})?(?:000)?(?:Z|\+00:00)")
WIDTH_OF_FILES = 1 << 15  # maximum line width in characters outside a terminal


@dataclass(frozen=True)
class Column:
    """A field of a row, `a.b` for a nested one; `show` formats a value that is not null."""

    field: str
    title: str = ""
    show: Callable[[Any], str] | None = None

    @property
    def heading(self) -> str:
        """Heading of the column."""
        return self.title or self.field.replace("_", " ").replace(".", " ")

    def text(self, row: Row) -> str:
        """Return the text of the column in a row."""
        value: Any = row
        name = ""
        for name in self.field.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        return self.show(value) if self.show and value is not None else show_field(name, value)


@dataclass(frozen=True)
class OutputTable:
    """Columns of a list for people."""

    columns: tuple[Column, ...]


def table(*columns: str | Column) -> OutputTable:
    """Declare a table of these fields."""
    return OutputTable(
        tuple(column if isinstance(column, Column) else Column(column) for column in columns)
    )


def to_row(thing: Any) -> Row:
    """Convert an object of the SDK to the form of the REST API."""
    row = thing.to_dict() if hasattr(thing, "to_dict") else _to_builtins(thing)
    assert isinstance(row, dict), "results are objects"
    return {name: _as_sent(name, value) for name, value in row.items()}


def _as_sent(name: str, value: Any) -> Any:
    """Convert times to the form of the service, 2026-01-31T12:00:00.000Z.

    Payloads of callers are unchanged.
    """
    if name in CALLER_DATA:
        return value
    if isinstance(value, str) and name.endswith(TIMES) and (match := _TIME.fullmatch(value)):
        return f"{match[1]}{match[2] or '.000'}Z"
    if isinstance(value, dict):
        return {inner: _as_sent(inner, item) for inner, item in value.items()}
    if isinstance(value, list):
        return [_as_sent(name, item) for item in value]
    return value


def age_of(time: str) -> float:
    """Return how long ago a time was, in seconds."""
    return (now() - datetime.fromisoformat(time)).total_seconds()


def show_age_of(time: str) -> str:
    """Format how long ago a time was."""
    return show_age(age_of(time))


def show_value(value: Any) -> str:
    """Format a value for a cell, without control sequences."""
    if value is None or value == "" or value == [] or value == {}:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list) and not any(isinstance(item, dict | list) for item in value):
        return ", ".join(show_value(item) for item in value)
    if isinstance(value, dict | list):
        return encode(value).decode()
    return strip_control_characters(str(value))


def _to_builtins(thing: Any) -> Any:
    import msgspec

    return msgspec.to_builtins(thing)


def strip_control_characters(text: str) -> str:
    """Escape control characters, which could rewrite what a terminal shows."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in text
    )


def encode(value: Any) -> bytes:
    """Encode a value as one line of JSON."""
    import msgspec

    return msgspec.json.encode(value)


def encode_pretty(value: Any) -> bytes:
    """Encode a value as indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str).encode()


def describe_change(change: Row) -> str:
    """Format a field that changes: its pointer, and its values before and after as JSON."""
    before, after = (encode(change[side]).decode() for side in ("before", "after"))
    return strip_control_characters(f"{change['pointer']}: {before} -> {after}")


class Output:
    """Output of results.

    `quiet`: prints only the names of lists, and nothing on mere success.
    """

    def __init__(
        self,
        form: OutputFormat = OutputFormat.TABLE,
        *,
        quiet: bool = False,
        file: BinaryIO | None = None,
        is_terminal: bool | None = None,
    ) -> None:
        self.form = form
        self.quiet = quiet
        self._file = sys.stdout.buffer if file is None else file
        self.is_terminal = sys.stdout.isatty() if is_terminal is None else is_terminal

    @property
    def for_people(self) -> bool:
        """True if the output is to be read, and not parsed."""
        return self.form is OutputFormat.TABLE

    def line(self, payload: bytes) -> None:
        """Write a line, flushed before this returns."""
        self.write(payload + b"\n")

    def write(self, payload: bytes) -> None:
        """Write bytes unchanged, flushed before this returns."""
        self._file.write(payload)
        self._file.flush()

    # ── Lists ──

    def rows(self, rows: Iterable[Row], shape: OutputTable) -> None:
        """Print a list."""
        if self.form is OutputFormat.NDJSON:
            for row in rows:
                self.line(encode(row))
        elif self.form is OutputFormat.JSON:
            self.line(encode_pretty(list(rows)))
        elif self.quiet:
            for row in rows:
                self.line(shape.columns[0].text(row).encode())
        else:
            self._table(rows, shape)

    def _table(self, rows: Iterable[Row], shape: OutputTable) -> None:
        titles = [column.heading for column in shape.columns]
        cells = [[column.text(row) for column in shape.columns] for row in rows]
        self._grid(cells, titles)

    def _grid(self, cells: list[list[str]], titles: list[str] | None = None) -> None:
        from rich.console import Console
        from rich.table import Table as Grid
        from rich.text import Text

        width = None if self.is_terminal else WIDTH_OF_FILES
        drawn = StringIO()
        console = Console(file=drawn, force_terminal=self.is_terminal, width=width, highlight=False)
        grid = Grid(
            box=None,
            pad_edge=False,
            padding=(0, 2, 0, 0),
            show_header=titles is not None,
        )
        for title in titles or [""] * (len(cells[0]) if cells else 0):
            grid.add_column(
                title, overflow="fold"
            )  # text that is too wide wraps, and is never truncated
        for line in cells:
            grid.add_row(*map(Text, line))
        console.print(grid)
        self.write("".join(f"{line.rstrip()}\n" for line in drawn.getvalue().splitlines()).encode())

    # ── One thing ──

    def show(self, row: Row, **sections: OutputTable | None) -> None:
        """Print one result. Fields in `sections` follow below, as a table, or as fields."""
        if not self.for_people:
            self.line(encode(row) if self.form is OutputFormat.NDJSON else encode_pretty(row))
            return
        self.fields({name: value for name, value in row.items() if name not in sections})
        for name, shape in sections.items():
            self.section(name.replace("_", " "), row[name], shape)

    def section(self, title: str, content: Any, shape: OutputTable | None = None) -> None:
        """Print a section for people: sentences, rows in the form of a table, or fields."""
        self.write(f"\n{title}\n".encode())
        if shape is not None:
            self._table(content, shape)
        elif isinstance(content, Mapping):
            self.fields(content)
        else:
            for sentence in content:
                self.line(strip_control_characters(sentence).encode())

    def fields(self, row: Mapping[str, Any]) -> None:
        """Print fields for people, each on a line."""
        self._grid([[name, show_field(name, value)] for name, value in row.items()])

    def done(self, sentence: str, row: Row | None = None) -> None:
        """Report success: a sentence for people, the result itself for programs."""
        if self.for_people:
            if not self.quiet:
                self.line(sentence.encode())
        elif row is not None:
            self.show(row)


def show_field(name: str, value: Any) -> str:
    """Format a field's value: seconds as a duration, times to the second."""
    if isinstance(value, int | float) and name.endswith("_seconds"):
        return show_duration(value)
    if isinstance(value, str) and name.endswith(TIMES) and (match := _TIME.fullmatch(value)):
        return f"{match[1]}Z"
    return show_value(value)
