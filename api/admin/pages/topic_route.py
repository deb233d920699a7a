"""Page of a route: its match and target, what it has delivered, and how far it is behind."""

from fastapi import APIRouter, Depends, Response

from api.admin.error_pages import PageRoute
from api.admin.pages._shared import topic_page
from api.admin.rendering import Context
from api.admin.route_map import route_view
from api.native.dependencies import NamePart, TopicPath, may
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action
from storage.domain.errors import TopicNotFound, ValidationFailed
from storage.domain.names import RouteName, TopicName

router = APIRouter(
    include_in_schema=False, route_class=PageRoute, prefix="/ui/topics/{topic}/routes"
)

SEE = Depends(may(Action.TOPIC_LIST))


async def find_names(storage: Storage, namespace: str, part: str) -> list[str]:
    """Return names of routes of a topic: `orders/bil` for those that begin with `bil`."""
    topic, slash, prefix = part.partition("/")
    if not slash:
        return []
    try:
        routes = await storage.topic_routes.list(TopicName(topic, namespace), prefix=prefix)
    except (TopicNotFound, ValidationFailed):
        return []
    return [f"{topic}/{route.name.route}" for route in routes]


@router.get("/{route}", dependencies=[SEE])
async def show_route(context: Context, topic: TopicPath, route: NamePart) -> Response:
    """Show a route."""
    storage = context.storage
    progress = await storage.topic_reports.progress(RouteName(topic, route))
    return topic_page(
        context,
        "route",
        await storage.topics.fresh(topic),
        live=True,
        route=route_view(progress),
        progress=progress,
        stored=progress.route,
    )
