"""Options of SQL queries: the text, and the relations that it reads."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from api.cli.io.stdin import read_text_file
from api.cli.shell.options import option
from api.cli.shell.output import Row

SqlText = Annotated[str, typer.Argument(help="Query, or - to read it from standard input.")]
SqlFile = Annotated[Path | None, option("--sql-file", "File with the query.", "FILE")]
Tables = Annotated[
    list[str] | None,
    option(
        "--table",
        "Stream that is read as a table, and columns of its data: u=users:'plan string'. Repeatable.",
        "NAME=STREAM[:DDL]",
    ),
]
Views = Annotated[
    list[str] | None, option("--view", "View, whose rows are read. Repeatable.", "NAME=VIEW")
]
Joined = Annotated[
    list[str] | None,
    option(
        "--join",
        "Stream that the query joins, and columns of its data: s=shipments:'id int'.",
        "NAME=STREAM[:DDL]",
    ),
]


def query_text(sql: str, file: Path | None) -> str:
    """Return the query of an argument or of a file; `-` is standard input."""
    if bool(sql) is (file is not None):
        raise typer.BadParameter("give the query, or --sql-file", param_hint="sql")
    if file is None and sql != "-":
        return sql
    return read_text_file(file or Path("-"), "query").strip()


def add_relations(
    relations: dict[str, Row], kind: str, options: Sequence[str] | None, flag: str = ""
) -> None:
    """Add the relations of an option such as `u=users:plan string`, which are of one kind.

    A view has no columns.
    """
    for text in options or ():
        name, equals, source = text.partition("=")
        source, colon, columns = source.partition(":")
        hint = flag or f"--{kind}"
        if not (name and equals and source) or (colon and kind == "view"):
            forms = "NAME=VIEW" if kind == "view" else "NAME=STREAM, or NAME=STREAM:COLUMNS"
            raise typer.BadParameter(f"write {forms}", param_hint=hint)
        if name in relations:
            raise typer.BadParameter(f"{name} is the name of another relation", param_hint=hint)
        relations[name] = {kind: source, **({} if kind == "view" else {"columns": columns})}
