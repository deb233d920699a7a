"""Pages of views: state, what the rows include, and the rows."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import msgspec
from fastapi import APIRouter, Depends, Query, Response
from msgspec.structs import replace

from api.admin.error_pages import PageRoute
from api.admin.lists import PAGE_ROWS, Words
from api.admin.pages._shared import page_by_name
from api.admin.rendering import Context, PageContext
from api.admin.route_map import TargetLink
from api.native.dependencies import ViewPath, may
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import ValidationFailed, ViewHistoryExpired
from storage.domain.names import ViewName
from storage.domain.views.plan import KeyColumn, ViewPlan
from storage.domain.views.row_key import WINDOW
from storage.domain.views.rows import RowQuery
from storage.domain.views.sink import Emit, SinkState, ViewSink
from storage.domain.views.sources import SourceMode
from storage.domain.views.state import ViewState, state_of
from storage.views.back_tests import ViewBackTest
from storage.views.engine import ViewStatus

router = APIRouter(prefix="/ui/views", include_in_schema=False, route_class=PageRoute)

SEE = Depends(may(Action.VIEW_LIST))
BATCHES_LISTED = 20
BACK_TESTS_LISTED = 5
_LABELS = {
    ViewState.RUNNING: ("ok", "Running"),
    ViewState.BUILDING: ("info", "Building"),
    ViewState.PAUSED: ("quiet", "Paused"),
    ViewState.STOPPED: ("bad", "Stopped"),
}
_GETS = {
    (Emit.CHANGES, False): "each change of a row",
    (Emit.CHANGES, True): "each row that appears",
    (Emit.FINAL, False): "final rows, and corrections",
    (Emit.FINAL, True): "final rows",
}
"""Description of what a sink gets, by its `emit` and `once_per_key`."""

_decoder = msgspec.json.Decoder(float_hook=str)


class ListedRows(NamedTuple):
    """Rows as a page shows them: the cells of each, or why there are none.

    `keys`: the key of each for the page of its sources, none where they are not tracked or text cannot name the row. `at_ms`: time of
    the batch that they belong to.
    """

    cells: Sequence[Sequence[str | None]] = ()
    keys: Sequence[Sequence[str]] = ()
    has_more: bool = False
    refusal: str = ""
    at_ms: int = 0


class ListedSink(NamedTuple):
    """Sink of a view as its page shows it."""

    sink: ViewSink
    state: SinkState

    @property
    def target(self) -> TargetLink:
        """The stream or queue, with its page."""
        return TargetLink.of(self.sink.target)

    @property
    def gets(self) -> str:
        """Description of what it gets."""
        return _GETS[self.sink.emit, self.sink.once_per_key]


def _state(status: ViewStatus) -> tuple[str, str]:
    """Return a view's state: the level to show it in, and its label."""
    state = state_of(status.view, status.active, status.building)
    if state is ViewState.RUNNING and status.active.failure:
        return "warn", "Failing"
    if state is ViewState.RUNNING and any(sink.failure for sink in status.sinks):
        return "warn", "Sink failing"
    return _LABELS[state]


async def find_names(storage: Storage, namespace: str, part: str) -> list[str]:
    """Return names of views that begin with `part`."""
    views = await storage.views.list_views(namespace, prefix=part)
    return [view.name.name for view in views]


@router.get("", dependencies=[SEE])
async def list_views(context: Context, q: Words = "", after: Words = "") -> Response:
    """List the views of the namespace that the caller may see."""
    engine = context.storage.views
    views, next_name = await page_by_name(context, engine.list_views, Action.VIEW_LIST, q, after)
    rows = [(status, _state(status)) for status in await engine.statuses(views)]
    return context.render("views.html", live=True, rows=rows, q=q, after=after, more=next_name)


@router.get("/{view}", dependencies=[SEE])
async def show_view(
    context: Context,
    view: ViewPath,
    key: Words = "",
    batch: Annotated[int | None, Query(ge=0, le=limits.OFFSET_MAX)] = None,
) -> Response:
    """Show a view, its first rows, and its last batches. `batch`: rows as they were after it."""
    engine = context.storage.views
    status, batches = await asyncio.gather(
        engine.status(view), engine.batches(view, BATCHES_LISTED)
    )
    rows, back_tests = None, list[ViewBackTest]()
    if context.may(Action.VIEW_READ, view.name):
        query = replace(_selection(status.active.plan, key), at_batch=batch)
        rows, back_tests = await asyncio.gather(
            _rows(context, view, query),
            context.storage.view_back_tests.recent(view, BACK_TESTS_LISTED),
        )
    return context.render(
        "view.html",
        live=True,
        view=status.view,
        active=status.active,
        building=status.building,
        former=status.former,
        state=_state(status),
        sinks=list(map(ListedSink, status.view.spec.into, status.sinks)),
        into=msgspec.to_builtins(status.view.spec.into),
        batches=batches,
        back_tests=back_tests,
        rows=rows,
        key=key,
        batch=batch,
    )


def _selection(plan: ViewPlan, key: str) -> RowQuery:
    """Return the query of the first rows; `key` is their first part, or its beginning."""
    if not key or not plan.key:
        return RowQuery(limit=PAGE_ROWS)
    if plan.key[0].type == "string":
        return RowQuery(limit=PAGE_ROWS, prefix=key)
    return RowQuery(limit=PAGE_ROWS, key=(key,))


async def _rows(context: PageContext, view: ViewName, query: RowQuery) -> ListedRows:
    try:
        page = await context.storage.view_rows.read(view, query)
    except (ValidationFailed, ViewHistoryExpired) as error:
        return ListedRows(refusal=error.detail)
    names = [column.name for column in page.revision.plan.columns]
    rows = [_decoder.decode(row) for row in page.rows]
    cells = [[_text(row.get(name)) for name in names] for row in rows]
    tracks = page.revision.query.sources is SourceMode.RANGE
    keys = [_key_of(row, page.revision.plan) if tracks else () for row in rows]
    read_ms = page.revision.progress.changed_at_ms
    return ListedRows(cells, keys, page.next_key is not None, at_ms=read_ms)


def _key_of(row: Mapping[str, Any], plan: ViewPlan) -> Sequence[str]:
    """Return the key of a row as a read takes it; empty if it cannot be given as text."""
    values = [_key_value(row, column) for column in plan.key]
    if any(value is None or isinstance(value, dict) for value in values):
        return ()
    return [_text(value) or "" for value in values]


def _key_value(row: Mapping[str, Any], column: KeyColumn) -> Any:
    """Return a row's value of a part of its key; of a window, its start."""
    value = row.get(column.name)
    return value.get("start") if column.type == WINDOW and isinstance(value, dict) else value


def _text(value: Any) -> str | None:
    """Return a value as a cell shows it; None for null."""
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()
