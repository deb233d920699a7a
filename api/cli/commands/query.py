"""`millstream query`: SQL queries over streams, tables and views, which run once."""

from typing import Annotated, Any

import typer

from api.cli.errors import CliError, ExitCode
from api.cli.io.sql_options import SqlFile, SqlText, Tables, Views, add_relations, query_text
from api.cli.shell.operations import JsonBody
from api.cli.shell.options import duration, fields, moment, option
from api.cli.shell.output import Column, Row, table, to_row
from api.cli.shell.progress import JobNotices
from api.cli.shell.terminal import LONG_S, Terminal, noun, verb

query = noun()

Name = Annotated[str, typer.Argument(help="Id of the query.", metavar="ID")]


@verb(
    query,
    "run",
    examples=[
        "millstream query run 'select page, count(*) as n from c group by page' --from c=clicks:'page string'",
        "millstream query run --sql-file visits.sql --from records=clicks:'page string' --max 10 -o json",
        "millstream query run --sql-file visits.sql --from records=clicks --columns 'page string' --since 1d",
    ],
)
def run(
    cli: Terminal,
    sql: SqlText = "",
    sql_file: SqlFile = None,
    streams: Annotated[
        list[str] | None,
        option(
            "--from",
            "Stream, under its name in the query, and columns of its data: c=clicks:'ms bigint'. Repeatable.",
            "NAME=STREAM[:DDL]",
        ),
    ] = None,
    tables: Tables = None,
    views: Views = None,
    columns: Annotated[
        str,
        option(
            "--columns", "Columns of the streams for which --from has none, as Spark DDL.", "DDL"
        ),
    ] = "",
    since: Annotated[
        Any,
        moment("--since", help="Only records that arrived then or later: 10m (ago), or a time."),
    ] = None,
    until: Annotated[
        Any, moment("--until", help="Only records that arrived before: 10m (ago), or a time.")
    ] = None,
    rows_max: Annotated[
        int | None, option("--max", "Rows to print at most; default: 1,000.", "NUMBER")
    ] = None,
    seconds_max: Annotated[
        float | None, duration("--within", help="End the query after this; default: 1m.")
    ] = None,
) -> None:
    """Run a query once, and print its rows.

    Ctrl-C stops waiting, not the query.
    """
    relations: dict[str, Row] = {}
    add_relations(relations, "stream", streams, "--from")
    for relation in relations.values():
        relation["columns"] = relation["columns"] or columns
        relation |= fields(
            None,
            start="time" if since else None,
            start_time=since and since.isoformat(),
            end_time=until and until.isoformat(),
        )
    add_relations(relations, "table", tables)
    add_relations(relations, "view", views)
    if not relations:
        raise typer.BadParameter("name a stream, a table or a view", param_hint="--from")
    limits = fields(None, rows_max=rows_max, seconds_max=seconds_max)
    body = JsonBody({"sql": query_text(sql, sql_file), "from": relations, **limits})
    _print(cli, _until_over(cli, cli.call("queries.run_query", body=body)))


@verb(query, "show")
def show(cli: Terminal, name: Name) -> None:
    """Wait for a query, and print its rows."""
    _print(cli, _until_over(cli, cli.call("queries.get_query", name)))


@verb(query, "cancel")
def cancel(cli: Terminal, name: Name) -> None:
    """Cancel a query. One that has ended stays as it is."""
    cancelled = cli.call("queries.cancel_query", name)
    cli.out.done(f"Query {name} is {_state(cancelled)}.", cancelled)


def _state(status: Row) -> str:
    return "being cancelled" if status["requested_state"] == "cancel" else str(status["state"])


def _until_over(cli: Terminal, status: Row) -> Row:
    """Wait for the end of a query. Raises CliError if it has no rows."""
    from millstream_client.sync.queries import OVER

    query_id = status["id"]
    if status["state"] not in OVER:
        cli.print_notice(f"waiting for query {query_id}: millstream query show {query_id}")
        notices = JobNotices(cli.print_notice)
        for seen in cli.connect(LONG_S).query(query_id).watch():
            status = to_row(seen)
            if status["state"] not in OVER:
                notices.report(status["failure"], status["waiting_for"])
    if status["state"] == "failed":
        raise CliError(f"query {query_id} failed: {status['failure']}")
    if status["state"] == "cancelled":
        raise CliError(f"query {query_id} was cancelled", ExitCode.PARTIAL)
    return status


def _print(cli: Terminal, status: Row) -> None:
    cli.out.rows(iter(status["rows"]), table(*(Column(one["name"]) for one in status["columns"])))
    if status["truncated"]:
        cli.print_notice(f"there are more than these {len(status['rows'])} rows")
