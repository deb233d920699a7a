"""Page of queries: an editor, the rows of one query, and the last queries."""

from typing import NamedTuple

from fastapi import APIRouter, Depends, Response

from api.admin.error_pages import PageRoute
from api.admin.lists import Words
from api.admin.rendering import Context
from api.native.dependencies import may
from storage.domain.access.permissions import Action
from storage.domain.errors import JobNotFound
from storage.domain.queries.query import SqlQuery
from storage.queries.permissions import may_query

router = APIRouter(prefix="/ui/queries", include_in_schema=False, route_class=PageRoute)

SEE = Depends(may(Action.QUERY_RUN))
LISTED = 20


class EditedRelation(NamedTuple):
    """Relation as the editor shows it. `kind`: stream, table or view."""

    name: str
    kind: str = "stream"
    source: str = ""
    columns: str = ""


@router.get("", dependencies=[SEE])
async def show_queries(
    context: Context, query: Words = "", stream: Words = "", view: Words = ""
) -> Response:
    """Show the editor, perhaps with a query that has run, and the last queries."""
    storage, principal = context.storage, context.principal
    recent = await storage.queries.recent(context.namespace, LISTED)
    shown = None
    if query:
        shown = (await storage.queries.get(context.namespace, query)).spec.query
        if not may_query(storage.authorizer, principal, shown):
            raise JobNotFound(f"Query '{query}' does not exist.")
    return context.render(
        "queries.html",
        query=shown,
        query_id=query,
        relations=_relations(shown) if shown else [_first(stream, view)],
        recent=[one for one in recent if may_query(storage.authorizer, principal, one.spec.query)],
    )


def _first(stream: str, view: str) -> EditedRelation:
    return EditedRelation("v", "view", view) if view else EditedRelation("c", source=stream)


def _relations(query: SqlQuery) -> list[EditedRelation]:
    return [
        *(
            EditedRelation(name, "stream", one.stream, one.columns)
            for name, one in query.streams.items()
        ),
        *(
            EditedRelation(name, "table", one.stream, one.columns)
            for name, one in query.tables.items()
        ),
        *(EditedRelation(name, "view", view) for name, view in query.views.items()),
    ]
