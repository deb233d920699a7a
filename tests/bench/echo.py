"""The reference server: the minimal work of an ASGI application.

Bodies are echoed. Only `…/receive` is answered with ten constant messages, to measure a client of
the service without the service, and `/wait` is never answered. Sockets are accepted, and nothing
more.
"""

import json
from typing import Any

TEN_MESSAGES = json.dumps(
    {
        "messages": [
            {
                "id": "00000000-0000-8000-8000-000000000000",
                "offset": 1_000_000 + number,
                "body": "m" * 256,
                "receipt_handle": f"{number:054d}",
                "sent_at": "2026-01-01T00:00:00.000Z",
                "first_received_at": "2026-01-01T00:00:00.000Z",
                "visible_at": "2026-01-01T00:00:30.000Z",
                "receive_count": 1,
                "failures": 0,
                "crash_count": 0,
            }
            for number in range(10)
        ]
    },
    separators=(",", ":"),
).encode()


def create_app() -> Any:
    """Create the application, in the same way as the service's."""
    return _echo


async def _echo(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "lifespan":
        await _live(receive, send)
        return
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept", "subprotocol": scope["subprotocols"][0]})
        await receive()
        return
    message = await receive()
    body = message["body"]
    while message.get("more_body"):
        message = await receive()
        body += message["body"]
    if scope["path"].endswith("/receive"):
        body = TEN_MESSAGES
    elif scope["path"] == "/wait":
        await receive()  # wait for the client to disconnect
        return
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _live(receive: Any, send: Any) -> None:
    for stage in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{stage}.complete"})
