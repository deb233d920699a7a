"""Request bodies, read from an ASGI connection."""

from typing import cast

from starlette.types import Message, Receive, Scope

from api.errors import ClientDisconnected
from api.http.codecs import check_request_bytes
from api.types import RequestHeaders

HALF_CLOSED = "millstream.half_closed"
"""Key of an ASGI scope, set when the client has closed its side of the connection."""


def is_open(receive: Receive, scope: Scope) -> bool:
    """Return whether an ASGI connection is open in both directions, as far as is known.

    Does not wait: runs one step of `receive`.
    """
    if HALF_CLOSED in scope:
        return False
    step = receive().__await__()
    try:
        next(step)
    except StopIteration as done:
        return bool(done.value["type"] != "http.disconnect")
    step.close()  # it was still waiting for a message
    return True


async def read_body(receive: Receive, headers: RequestHeaders) -> bytes:
    """Read the request's body.

    Raises HttpError when it is too large, ClientDisconnected when it does not arrive completely.
    """
    if (length := headers.get(b"content-length")) is not None and length.isdigit():
        check_request_bytes(int(length))
    message = await receive()
    payload = cast(bytes, message.get("body", b""))
    if message["type"] == "http.request" and not message.get("more_body"):
        return payload
    return await _read_chunks(receive, message)


async def _read_chunks(receive: Receive, message: Message) -> bytes:
    chunks: list[bytes] = []
    size_bytes = 0
    while message["type"] == "http.request":
        chunks.append(message.get("body", b""))
        size_bytes += len(chunks[-1])
        check_request_bytes(size_bytes)
        if not message.get("more_body"):
            return b"".join(chunks)
        message = await receive()
    raise ClientDisconnected
