"""Open WebSockets and their remaining credit."""

from fastapi import APIRouter, Depends, Response

from api.admin.error_pages import PageRoute
from api.admin.lists import PAGE_ROWS, Start, Words, slice_of
from api.admin.rendering import Context
from api.native.dependencies import may_all
from storage.domain.access.permissions import Action
from storage.domain.presence import SocketSeen

router = APIRouter(prefix="/ui/sockets", include_in_schema=False, route_class=PageRoute)

SEE = Depends(may_all(Action.SOCKET_LIST))


@router.get("", dependencies=[SEE])
async def list_sockets(context: Context, q: Words = "", start: Start = 0) -> Response:
    """All sockets of the namespace."""
    seen = {one.id: one for one in await context.storage.presence.sockets(context.namespace)}
    page = slice_of([name for name, one in seen.items() if _mentions(one, q)], start)
    rows = [seen[name] for name in page.names]
    return context.render(
        "sockets.html", live=True, rows=rows, page=page, size=PAGE_ROWS, q=q, all=len(seen)
    )


def _mentions(socket: SocketSeen, words: str) -> bool:
    """Return whether a socket's caller, address or subscriptions contain the text."""
    sources = (one.source for one in socket.subscriptions)
    return any(words in text for text in (socket.id, socket.principal, socket.address, *sources))
