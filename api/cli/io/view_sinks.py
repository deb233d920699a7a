"""Sinks of a view as options have them and tables show them: `queue:alerts`."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from api.cli.grammar.common_options import parsed_by
from api.cli.shell.options import fields, option
from api.cli.shell.output import Column, Row, table

KINDS = ("stream", "queue")
SINKS = table(
    Column("sink", "target"),
    "emit",
    "when",
    "once_per_key",
    "pending",
    "sent",
    Column("failure", "last failure"),
)


class EmitOption(StrEnum):
    """Changes that a sink gets."""

    CHANGES = "changes"
    FINAL = "final"


def parse_sink(text: str) -> Row:
    """Parse `stream:NAME` or `queue:NAME`. Raises ValueError."""
    kind, _, name = text.partition(":")
    if kind not in KINDS or not name:
        raise ValueError(f"{text!r} is not a sink: use stream:NAME or queue:NAME")
    return {kind: name}


Into = Annotated[
    list[Any] | None,
    typer.Option(
        "--into",
        parser=parsed_by(parse_sink),
        metavar="KIND:NAME",
        help="Stream or queue that gets the changes of the rows, such as queue:alerts; repeat for more.",
    ),
]
EmitChoice = Annotated[
    EmitOption | None,
    option("--emit", "Of --into: changes, or final for the rows of windows that have ended."),
]
When = Annotated[
    str | None,
    option("--when", "Of --into: only rows for which this SQL condition holds.", "CONDITION"),
]
OncePerKey = Annotated[
    bool,
    option("--once-per-key", "Of --into: a row only when it appears, or --when becomes true."),
]


def sinks_of(
    into: list[Row] | None, emit: str | None, when: str | None, *, once_per_key: bool
) -> list[Row] | None:
    """Return the sinks that options describe; None without any. Raises BadParameter."""
    properties = fields(None, emit=emit, when=when, once_per_key=once_per_key or None)
    if not properties:
        return into or None
    if into and len(into) == 1:
        return [into[0] | properties]
    names = ", ".join(f"--{name.replace('_', '-')}" for name in properties)
    remedy = "give each sink its own in a manifest, with `millstream apply -f`"
    detail = f"belongs to a single --into; with several, {remedy}" if into else "needs --into"
    raise typer.BadParameter(detail, param_hint=names)


def sink_rows(view: Row) -> list[Row]:
    """Return the sinks of a view, each with its settings and its state."""
    pairs = zip(view["into"], view["sinks"], strict=True)
    return [settings | state for settings, state in pairs]
