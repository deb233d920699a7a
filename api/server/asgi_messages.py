"""Wrappers of ASGI's receive and send for the control plane: limits, codings, headers."""

from collections.abc import Iterable

from starlette.types import Message, Receive, Send

from api.http.body import read_body
from api.http.codecs import too_large
from api.http.content_codings import CONTENT_ENCODING, VARY, decoded, gzipped
from api.http.request_id import HEADER as REQUEST_ID
from api.http.responses import ExtraHeaders
from api.types import RequestHeaders
from storage.domain import limits

NO_STORE = (b"cache-control", b"no-store")
_REVALIDATE = (b"cache-control", b"private, no-cache")


def _caching(headers: Iterable[tuple[bytes, bytes]]) -> tuple[tuple[bytes, bytes], ...]:
    """Return `Cache-Control`: revalidate responses with an ETag, do not store any other."""
    names = {name for name, _ in headers}
    if b"cache-control" in names:
        return ()
    return (_REVALIDATE,) if b"etag" in names else (NO_STORE,)


async def coded_answer(body: bytes, accepted: bytes) -> tuple[bytes, ExtraHeaders]:
    """Return an answer's body, compressed if the client accepts that, and its headers.

    `accepted` is the value of Accept-Encoding.
    """
    if len(body) < limits.CODED_ANSWER_BYTES_MIN:
        return body, ()
    compressed = await gzipped(body, accepted)
    if compressed is None:
        return body, (VARY,)
    return compressed, ((CONTENT_ENCODING, b"gzip"), VARY)


def bounded(receive: Receive, headers: RequestHeaders, bytes_max: int) -> Receive:
    """Wrap `receive` to raise HttpError when a body is too large, and to remove its coding."""
    size = 0

    async def receive_bounded() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > bytes_max:
            raise too_large(bytes_max)
        return message

    return _decoding(receive_bounded, headers, bytes_max)


def _decoding(receive: Receive, headers: RequestHeaders, bytes_max: int) -> Receive:
    """Wrap `receive` to return a coded body as one decoded message."""
    if CONTENT_ENCODING not in headers:
        return receive
    is_read = False

    async def receive_decoded() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        body = await decoded(await read_body(receive, {}), headers, bytes_max)
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_decoded


class ResponseObserver:
    """Wrapper of FastAPI's `send` that adds the request id and other headers.

    It records the status, and codes a complete answer in one of the `accepted` codings.
    """

    def __init__(self, send: Send, request_id: bytes, accepted: bytes) -> None:
        self.wrapped = send
        self.request_id = request_id
        self._accepted = accepted
        self._start: Message | None = None
        self.extra_headers: ExtraHeaders = ()
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = message.get("headers", ())
            own = (REQUEST_ID, self.request_id)
            extra_headers = (
                self.extra_headers if self.status < 400 else ()
            )  # an error has its own headers
            message["headers"] = [*headers, *_caching(headers), own, *extra_headers]
            if self._accepted and _is_complete(headers):
                self._start = message
                return
        elif self._start is not None:
            message = await self._coded(self._start, message)
            self._start = None
        await self.wrapped(message)

    async def _coded(self, start: Message, message: Message) -> Message:
        """Send the start of an answer, and return its body, in a coding if that is worth it."""
        body, headers = await coded_answer(message.get("body", b""), self._accepted)
        others = [header for header in start["headers"] if header[0] != b"content-length"]
        length = (b"content-length", b"%d" % len(body))
        await self.wrapped({**start, "headers": [*others, length, *headers]})
        return {**message, "body": body}


def _is_complete(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether an answer has a length and no coding: its body comes in one message."""
    names = {name for name, _ in headers}
    return b"content-length" in names and CONTENT_ENCODING not in names
