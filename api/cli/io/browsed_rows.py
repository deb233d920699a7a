"""Rows of browsed messages and dead letters."""

from collections.abc import Iterable, Iterator
from typing import Any

from api.cli.shell.output import Column, Row, show_value, to_row
from api.cli.shell.terminal import Terminal

BODY = Column("text", "body", show_value)


def with_text(cli: Terminal, messages: Iterable[Any]) -> Iterator[Row]:
    """Return rows, for people with the body as one line of text."""
    from api.cli.io.rows import payload_text

    for row in map(to_row, messages):
        yield {**row, "text": payload_text(row, "body")} if cli.out.for_people else row
