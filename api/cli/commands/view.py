"""`millstream view`: SQL queries over streams, whose rows are kept up to date."""

from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from typing import Annotated, Any

import typer

from api.cli.descriptions.back_tests import describe_view_job, start_view_job, wait_parameter
from api.cli.descriptions.problems import view_problems
from api.cli.descriptions.sections import Section, describe, settings_section
from api.cli.grammar.parsers import StreamPosition
from api.cli.io.sql_options import (
    Joined,
    SqlFile,
    SqlText,
    Tables,
    Views,
    add_relations,
    query_text,
)
from api.cli.io.view_sinks import (
    SINKS,
    EmitChoice,
    Into,
    OncePerKey,
    When,
    sink_rows,
    sinks_of,
)
from api.cli.manifests.edit_verb import edit_verb
from api.cli.shell.definitions import (
    Definition,
    declare,
    delete_verb,
    pause_verbs,
    put_verbs,
)
from api.cli.shell.options import (
    Limit,
    Prefix,
    Settings,
    StreamName,
    duration,
    fields,
    moment,
    option,
    position_option,
)
from api.cli.shell.output import Column, Row, table
from api.cli.shell.terminal import Terminal, noun, verb

view = noun()

VIEWS = table("name", "stream", "late", "keep_seconds", "paused", "changed_at")
COLUMNS = table("name", "type")
SOURCES = table("shard", "offset", "arrival_time", "key", "data")
BATCHES = table("batch", "at", "records", "late", "bad", "gaps", "rows", "seconds")
BACK_TESTS = table(
    *("id", "state"),
    *(Column(f"result.{name}", name) for name in ("records", "added", "removed", "changed")),
    Column("created_at", "created"),
)
PLANNED = (
    *("output", "key", "window_seconds", "step_seconds", "session_gap_seconds", "join_seconds"),
    "aggregates",
)
WAIT_S = 20
OUTCOME = (
    *("state", "stopped", "failure", "revision", "progress", "building", "former", "report"),
    *("sinks", *PLANNED),
)

Name = Annotated[str, typer.Argument(help="View.")]
Names = Annotated[list[str], typer.Argument(help="Views.")]


class LateOption(StrEnum):
    """Treatment of late records."""

    COUNT = "count"
    DROP = "drop"


class SourcesOption(StrEnum):
    """Tracking of the sources of rows."""

    NONE = "none"
    RANGE = "range"


class BadOption(StrEnum):
    """Treatment of records that cannot be read."""

    NULL = "null"
    SKIP = "skip"


def _configuration(
    stream: StreamName,
    sql: SqlText = "",
    sql_file: SqlFile = None,
    relation: Annotated[
        str, option("--as", "Name of the stream in the query.", "NAME")
    ] = "records",
    columns: Annotated[
        str | None,
        option("--columns", "Columns of the JSON data, such as 'page string, ms bigint'.", "DDL"),
    ] = None,
    joined: Joined = None,
    tables: Tables = None,
    views: Views = None,
    event_time: Annotated[
        str | None, option("--event-time", "Column with the event time.", "COLUMN")
    ] = None,
    start: Annotated[
        Any,
        position_option("--start", help="First record: earliest, latest, 10m (ago), or a time."),
    ] = None,
    watermark: Annotated[
        float | None,
        duration("--watermark", help="How far the watermark is behind the newest event time."),
    ] = None,
    idle: Annotated[
        float | None,
        duration("--idle", help="A shard without records for so long does not hold it back."),
    ] = None,
    on_bad: Annotated[
        BadOption | None, option("--on-bad", "Records that cannot be read: null or skip.")
    ] = None,
    sources: Annotated[
        SourcesOption | None,
        option("--sources", "Track which records contributed to a row: none or range."),
    ] = None,
    late: Annotated[LateOption | None, option("--late", "Late records: count or drop.")] = None,
    keep: Annotated[
        float | None,
        duration("--keep", help="Delete rows whose window ended so long before the watermark."),
    ] = None,
    rows_max: Annotated[int | None, option("--rows-max", "Rows with which it stops.")] = None,
    keep_former: Annotated[
        float | None,
        duration("--keep-former", help="Keep a revision that was replaced, to roll back."),
    ] = None,
    history: Annotated[
        float | None,
        duration("--history", help="Earlier versions of rows can be read for so long."),
    ] = None,
    into: Into = None,
    emit: EmitChoice = None,
    when: When = None,
    once_per_key: OncePerKey = False,
    set_: Settings = None,
) -> dict[str, Any]:
    read = fields(
        None,
        stream=stream,
        columns=columns,
        event_time=event_time,
        watermark_seconds=watermark,
        idle_seconds=idle,
        on_bad=on_bad,
        **_start(start),
    )
    sinks = sinks_of(into, emit, when, once_per_key=once_per_key)
    configured = fields(
        set_,
        late=late,
        sources=sources,
        keep_seconds=keep,
        rows_max=rows_max,
        keep_former_seconds=keep_former,
        history_seconds=history,
        into=sinks,
    )
    relations = {relation: read}
    add_relations(relations, "stream", joined, "--join")
    add_relations(relations, "table", tables)
    add_relations(relations, "view", views)
    return {"sql": query_text(sql, sql_file), "from": relations, **configured}


def _start(position: StreamPosition | None) -> Row:
    """Return the fields of a start."""
    if position is None:
        return {}
    if position.offset is not None:
        raise typer.BadParameter("earliest, latest, or a time", param_hint="--start")
    if position.time is None:
        return {"start": position.end}
    return {"start": "time", "start_time": position.time.isoformat()}


def _columns_note(stored: Row) -> str:
    """Return a sentence with the columns of the rows."""
    columns = ", ".join(f"{one['name']} {one['type']}" for one in stored.get("output", ()))
    return f" Columns: {columns}." if columns else ""


VIEW = Definition(view, "View", Name, "views.{}_view", _configuration, _columns_note)

put_verbs(
    VIEW,
    create=[
        "millstream view create page-clicks clicks --sql-file visits.sql --sources range",
        "millstream view create clicks-today clicks --start 1d --history 7d --sql-file visits.sql",
        "millstream view create popular clicks --sql-file visits.sql --into queue:mails --when 'visits > 1000' --once-per-key",
    ],
    apply=["millstream view apply page-clicks clicks --sql-file visits.sql --dry-run"],
)


edit_verb(VIEW, "millstream view edit page-clicks")


@verb(view, "ls", examples=["millstream view ls"])
def list_views(cli: Terminal, prefix: Prefix = "") -> None:
    """List views."""
    listed = cli.pages("views.list_views", prefix=prefix)
    cli.out.rows(map(_with_stream, listed), VIEWS)


def _with_stream(view: Row) -> Row:
    streams = [one["stream"] for one in view["from"].values() if "stream" in one]
    return {**view, "stream": ", ".join(streams)}


@verb(view, "show", examples=["millstream view show page-clicks"])
def show(cli: Terminal, name: Name) -> None:
    """Show a view: problems, progress, sinks."""
    shown = cli.call("views.get_view", name)
    describe(
        cli,
        shown,
        view_problems(shown),
        Section(
            "progress", {name: shown[name] for name in ("state", "revision")} | shown["progress"]
        ),
        Section("former revision", _former_row(shown)),
        Section("rebuild", _report_row(shown)),
        Section("sinks", sink_rows(shown), SINKS),
        Section("columns", shown["output"], COLUMNS),
        Section("plan", {name: shown[name] for name in PLANNED if name != "output"}),
        settings_section(shown, "into", *OUTCOME),
    )


def _former_row(shown: Row) -> Row:
    """Return the fields of the former revision; none if there is none."""
    former = shown["former"] or {}
    return {name: former[name] for name in ("revision", "sql", "until") if name in former}


def _report_row(shown: Row) -> Row:
    """Return the comparison of a rebuild with the rows that it replaced; none without one."""
    return {name: value for name, value in (shown["report"] or {}).items() if name != "samples"}


@verb(view, "rollback", examples=["millstream view rollback page-clicks"])
def roll_back(cli: Terminal, name: Name) -> None:
    """Return to the former revision of a view."""
    shown = cli.call("views.roll_back_view", name)
    number = shown["building"]["revision"] if shown["building"] else shown["revision"]
    cli.out.done(f"Revision {number} of view {name} has the former query again.", shown)


@verb(view, "rebuild", examples=["millstream view rebuild page-clicks"])
def rebuild(cli: Terminal, name: Name) -> None:
    """Build the rows of a view again."""
    shown = cli.call("views.rebuild_view", name)
    number = shown["building"]["revision"] if shown["building"] else shown["revision"]
    note = f"millstream view show {name} compares the rows when it has caught up"
    cli.out.done(f"Revision {number} of view {name} is being built: {note}.", shown)


def _back_test(cli: Terminal, /, name: str, **options: Any) -> None:
    """Test other settings on a view's records.

    A job evaluates them, and nothing is sent. The result has the rows that differ, and the messages that sinks would have got.
    """
    wait = options.pop("wait")
    start_view_job(cli, name, VIEW.configuration(**options), wait=wait)


declare(_back_test, VIEW, [wait_parameter()])
verb(
    view,
    "backtest",
    examples=["millstream view backtest page-clicks clicks --sql-file visits.sql --no-wait"],
)(_back_test)


@verb(view, "backtests", examples=["millstream view backtests page-clicks"])
def back_tests(
    cli: Terminal,
    name: Name,
    back_test_id: Annotated[str, option("--id", "Show the result of this one.", "ID")] = "",
    limit: Limit = None,
) -> None:
    """List the last back-tests of a view."""
    if back_test_id:
        describe_view_job(cli, cli.call("views.get_view_backtest", name, back_test_id))
        return
    listed = cli.call("views.list_view_backtests", name, **fields(None, limit=limit))
    cli.out.rows(iter(listed["items"]), BACK_TESTS)


@verb(
    view,
    "rows",
    examples=[
        "millstream view rows page-clicks",
        "millstream view rows page-clicks --key home -o json",
        "millstream view rows page-clicks --prefix ho --desc -o ndjson",
    ],
)
def rows(
    cli: Terminal,
    name: Name,
    key: Annotated[
        list[str] | None,
        option("--key", "Value of the first column of the key; repeat for the next.", "VALUE"),
    ] = None,
    prefix: Annotated[
        str, option("--prefix", "Beginning of the next column of the key, a text.", "PREFIX")
    ] = "",
    window_from: Annotated[
        Any, moment("--window-from", help="Only windows that end after: 10m (ago), or a time.")
    ] = None,
    window_to: Annotated[
        Any, moment("--window-to", help="Only windows that begin before: 10m (ago), or a time.")
    ] = None,
    latest: Annotated[bool, option("--latest", "Only the newest window of each key.")] = False,
    descending: Annotated[bool, option("--desc", "In descending order of the key.")] = False,
    after: Annotated[
        str, option("--after", "Wait until the rows include this record.", "SHARD:OFFSET")
    ] = "",
    at_time: Annotated[Any, moment("--at", help="Rows as they were: 10m (ago), or a time.")] = None,
    at_batch: Annotated[
        int | None, option("--at-batch", "Rows as they were after this batch.", "NUMBER")
    ] = None,
    limit: Limit = None,
) -> None:
    """Read the rows of a view by key."""
    handle = cli.client.view(name)
    selected: Iterator[Row] = handle.rows(
        key=key or (),
        prefix=prefix,
        window_from=window_from,
        window_to=window_to,
        latest=latest,
        descending=descending,
        after=after,
        wait_seconds=WAIT_S if after else 0,
        at=at_time,
        at_batch=at_batch,
    )
    shape = table()
    if cli.out.for_people:
        shape = table(*(Column(one.name) for one in handle.details().output))
    cli.out.rows(islice(selected, limit), shape)


@verb(
    view,
    "sources",
    examples=[
        "millstream view sources page-clicks --key home",
        "millstream view sources page-clicks --key home -o ndjson",
    ],
)
def sources(
    cli: Terminal,
    name: Name,
    key: Annotated[
        list[str] | None,
        option("--key", "Value of the first column of the key; repeat for the next.", "VALUE"),
    ] = None,
    limit: Limit = None,
) -> None:
    """List the records behind a row of a view."""
    records = cli.client.view(name).sources(key=key or ())
    cli.out.rows(islice(records, limit), SOURCES)


@verb(view, "batches", examples=["millstream view batches page-clicks"])
def batches(cli: Terminal, name: Name, limit: Limit = None) -> None:
    """List the last batches of a view."""
    listed = cli.call("views.list_view_batches", name, **fields(None, limit=limit))
    cli.out.rows(iter(listed["items"]), BATCHES)


pause_verbs(
    VIEW,
    pause="Pause a view. Its rows stay, and it continues where it was when it is resumed.",
    resume="Resume a paused or stopped view.",
    example="page-clicks",
)


@delete_verb(VIEW, Names, "millstream view rm page-clicks --yes")
def remove(cli: Terminal, name: str) -> str:
    """Delete views and their rows. The streams are kept."""
    count = cli.call("views.get_view", name)["progress"]["rows"]
    return f"View {name} with {count} rows will be deleted."
