"""Encoder of responses: heads of hot responses, and complete refusals."""

import secrets
from collections.abc import Iterable
from http import HTTPStatus

from api.aws.refusals import AwsRefusal, refusal_of
from api.errors import HttpError
from api.http.responses import Response
from api.native.problems import PROBLEM_JSON, problem
from api.types import RequestHeaders

Headers = list[tuple[bytes, bytes]]

_NO_CONTENT = HTTPStatus.NO_CONTENT.value
_STATUS_LINES = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus
}


def encode_head(
    answer: Response, server_headers: Headers, keep_alive: bool, *, is_chunked: bool = True
) -> bytes:
    """Encode the status line and the headers; a streaming response has no length."""
    if answer.pieces is not None:
        length = b"transfer-encoding: chunked\r\n" if is_chunked else b""
    elif answer.status == _NO_CONTENT:
        length = b""
    else:
        length = b"content-length: %d\r\n" % len(answer.body)
    return b"%b%bcache-control: no-store\r\ncontent-type: %b\r\n%bx-request-id: %b\r\n%b%b\r\n" % (
        _STATUS_LINES[answer.status],
        _server_lines(server_headers),
        answer.kind.encode(),
        length,
        answer.request_id,
        _lines(answer.extra_headers) if answer.extra_headers else b"",
        b"" if keep_alive else b"connection: close\r\n",
    )


def encode_refusal(
    refusal: HttpError, server_headers: Headers, url: bytes, headers: RequestHeaders
) -> bytes:
    """Encode a whole error response, after which the connection ends.

    `url` and `headers`: what has arrived of the request's, by which AWS clients are recognised.
    """
    details = refusal_details(refusal, url, headers)
    lines = _lines(
        [
            *server_headers,
            (b"content-type", details.kind.encode()),
            (b"content-length", b"%d" % len(details.body)),
            *details.headers,
            (b"connection", b"close"),
        ]
    )
    return _STATUS_LINES[details.status] + lines + b"\r\n" + details.body


def refusal_details(refusal: HttpError, url: bytes, headers: RequestHeaders) -> AwsRefusal:
    """Return an error response with its request id, in the protocol of the client."""
    request_id = secrets.token_hex(10).encode()
    details = refusal_of(refusal, url, headers)
    if details is None:
        native = problem(refusal, instance="", request_id=request_id.decode())
        details = AwsRefusal(native.status, PROBLEM_JSON, native.body, ())
    return details._replace(headers=((b"x-request-id", request_id), *details.headers))


def _lines(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return header lines. Raises ValueError for a value that would end its line."""
    lines = []
    for name, value in headers:
        if b"\r" in value or b"\n" in value:
            raise ValueError("a header value spans several lines")
        lines.append(b"%b: %b\r\n" % (name, value))
    return b"".join(lines)


class _ServerLines:
    """Encoder of the headers that uvicorn adds to every response.

    uvicorn replaces their list each second.
    """

    def __init__(self) -> None:
        self._headers: Headers | None = None
        self._lines = b""

    def __call__(self, headers: Headers) -> bytes:
        if headers is not self._headers:
            self._headers, self._lines = headers, _lines(headers)
        return self._lines


_server_lines = _ServerLines()
