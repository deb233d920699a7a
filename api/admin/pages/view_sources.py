"""Page of a row of a view: the records that contributed to it."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response

from api.admin.browsing.body_preview import escape_misleading, summary
from api.admin.error_pages import PageRoute
from api.admin.lists import PAGE_ROWS
from api.admin.rendering import Context
from api.native.dependencies import PrincipalDep, StorageDep, ViewPath, may
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import ViewSourcesPending
from storage.domain.names import StreamName
from storage.domain.streams.stream import LogRecord
from storage.domain.views.source_search import RecordLocation

router = APIRouter(prefix="/ui/views/{view}", include_in_schema=False, route_class=PageRoute)

Key = Annotated[list[str], Query(max_length=limits.VIEW_OUTPUT_COLUMNS_MAX)]
After = Annotated[str, Query(pattern="^([0-9]{1,9}:[0-9]{1,16})?$")]
NO_KEY: list[str] = []


@router.get("/sources", dependencies=[Depends(may(Action.VIEW_READ))])
async def show_sources(
    *,
    context: Context,
    view: ViewPath,
    storage: StorageDep,
    principal: PrincipalDep,
    key: Key = NO_KEY,
    after: After = "",
) -> Response:
    """Show a row of a view, and the records that contributed to it, page by page."""
    streams: list[str] = []

    def authorise(stream: StreamName) -> None:
        storage.authorizer.authorise(principal, Action.STREAM_READ, str(stream))
        streams.append(stream.name)

    start = RecordLocation(*map(int, after.split(":"))) if after else None
    trouble, sources = "", None
    try:
        sources = await storage.view_sources.read(
            view, key, limit=PAGE_ROWS, after=start, authorise=authorise
        )
    except ViewSourcesPending as error:
        trouble = error.detail
    return context.render(
        "view_sources.html",
        view=view,
        stream=streams[-1],
        key=key,
        trouble=trouble,
        sources=sources,
        row=sources.row.decode() if sources and sources.row else "",
        lines=[(shard, one, _key(one), summary(one.record.data)) for shard, one in sources.records]
        if sources
        else [],
        after=after,
        next="{}:{}".format(*sources.next) if sources and sources.next else "",
    )


def _key(record: LogRecord) -> str:
    return escape_misleading(record.record.key)
