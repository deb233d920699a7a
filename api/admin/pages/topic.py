"""Pages of a topic: its routes, a message to try, back-tests, and its settings."""

from fastapi import APIRouter, Depends, Response

from api.admin.error_pages import PageRoute
from api.admin.lists import PAGE_ROWS, Words, first_page
from api.admin.pages._shared import topic_page
from api.admin.rendering import Context
from api.admin.route_map import RouteView, route_map, route_view
from api.native.dependencies import TopicPath, may
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.names import TopicName
from storage.domain.streams.stream import StreamSpec
from storage.topics.reports import TopicReports
from storage.topics.routes import TopicRoutes

router = APIRouter(include_in_schema=False, route_class=PageRoute, prefix="/ui/topics/{topic}")

SEE = Depends(may(Action.TOPIC_LIST))
READ = Depends(may(Action.TOPIC_READ))


@router.get("", dependencies=[SEE])
async def show_topic(
    context: Context, topic: TopicPath, q: Words = "", after: Words = ""
) -> Response:
    """Show a topic's routes, as a figure if one page has all of them."""
    storage = context.storage
    stored = await storage.topics.fresh(topic)
    [status] = await storage.topic_reports.statuses([stored])
    rows, next_name = await _routes(storage.topic_routes, storage.topic_reports, topic, q, after)
    samples = await storage.time_series.latest_streams(topic.namespace)
    return topic_page(
        context,
        "routes",
        stored,
        live=True,
        status=status,
        sample=samples.get(topic.stream.name),
        rows=rows,
        map=[] if q or after or next_name else route_map(rows),
        q=q,
        after=after,
        more=next_name,
    )


async def _routes(
    routes: TopicRoutes, reports: TopicReports, topic: TopicName, prefix: str, after: str
) -> tuple[list[RouteView], str | None]:
    """Return a page of routes, and the name that the next one begins after."""
    listed = await routes.list(topic, prefix=prefix, after=after, limit=PAGE_ROWS + 1)
    page, next_name = first_page(listed, lambda route: route.name.route)
    return [route_view(one) for one in await reports.progress_of(topic, page)], next_name


@router.get("/try", dependencies=[READ])
async def show_try(context: Context, topic: TopicPath) -> Response:
    """Show a form for a message, which explains the routes that would take it."""
    stored = await context.storage.topics.fresh(topic)
    return topic_page(context, "try", stored, live=False)


@router.get("/backtest", dependencies=[READ])
async def show_backtest(context: Context, topic: TopicPath) -> Response:
    """Show a form for a match, which is evaluated on the topic's messages."""
    stored = await context.storage.topics.fresh(topic)
    return topic_page(context, "backtest", stored, live=False)


@router.get("/settings", dependencies=[SEE])
async def show_settings(context: Context, topic: TopicPath) -> Response:
    """Show the settings of a topic."""
    stored = await context.storage.topics.fresh(topic)
    [status] = await context.storage.topic_reports.statuses([stored])
    return topic_page(
        context,
        "settings",
        stored,
        live=False,
        spec=stored.spec,
        default=StreamSpec(retention_ms=limits.TOPIC_RETENTION_MS_DEFAULT),
        status=status,
    )
