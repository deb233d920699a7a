"""WebSocket connections: list and close."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from api.native.audited_route import AuditedRoute
from api.native.cursors import decode_cursor, page_of
from api.native.dependencies import Cursor, Limit, PrincipalDep, StorageDep, may_all
from api.native.examples import AT, PROCESS_ID, Example
from api.rest.schemas.presence import SocketOut, SocketPage
from storage.domain import limits
from storage.domain.access.permissions import Action

router = APIRouter(prefix="/v1/sockets", tags=["sockets"], route_class=AuditedRoute)

SEE = Depends(may_all(Action.SOCKET_LIST))
CLOSE = Depends(may_all(Action.SOCKET_CLOSE))
SocketId = Annotated[str, Path(description="As returned by the list.")]


@router.get("", dependencies=[SEE])
async def list_sockets(
    storage: StorageDep,
    principal: PrincipalDep,
    limit: Limit = limits.PAGE_ITEMS_DEFAULT,
    cursor: Cursor = "",
) -> SocketPage:
    """List the WebSocket connections of all processes, as of a few seconds ago.

    For a process with more than 500 connections, the oldest 500 are listed.
    """
    about = ("sockets", principal.namespace)
    after = decode_cursor(cursor, about, str) if cursor else ""
    seen = await storage.presence.sockets(principal.namespace)
    sockets = [socket for socket in seen if socket.id > after]
    page = page_of(sockets, limit, about, lambda socket: socket.id)
    return SocketPage(
        items=[SocketOut.from_domain(socket) for socket in page.items],
        next_cursor=page.next_cursor,
    )


@router.delete("/{socket}", dependencies=[CLOSE], status_code=204)
async def close_socket(socket: SocketId, storage: StorageDep, principal: PrincipalDep) -> None:
    """Close a WebSocket connection with code 4012 and end its session.

    What the session holds is released. Its process closes the connection within three seconds. The client can reconnect.
    """
    await storage.presence.request_close(principal.namespace, socket)


# Examples of the OpenAPI document

SOCKET_ID = "5b1f9c22e07a4d36"

EXAMPLES = {
    "list_sockets": Example(
        "/v1/sockets",
        answer={
            "items": [
                {
                    "id": SOCKET_ID,
                    "process": PROCESS_ID,
                    "principal": "shop",
                    "address": "192.0.2.7",
                    "protocol": "millstream.v1.json",
                    "connected_at": AT,
                    "queued_bytes": 512,
                    "subscriptions": [
                        {
                            "name": "orders",
                            "source": "queue:orders",
                            "mode": "work",
                            "group": None,
                            "credit_messages": 98,
                            "credit_bytes": 1048064,
                        }
                    ],
                }
            ],
            "next_cursor": None,
        },
    ),
    "close_socket": Example(f"/v1/sockets/{SOCKET_ID}", status=204),
}
