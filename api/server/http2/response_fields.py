"""Header fields of responses, in the form that HTTP/2 requires."""

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus

from api.errors import HttpError
from api.http.responses import Response
from api.server.asgi_messages import NO_STORE
from api.server.response_encoder import refusal_details

Fields = list[tuple[bytes, bytes]]

_OF_CONNECTIONS = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade"}
)
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_STATUSES = {status.value: (b":status", b"%d" % status) for status in HTTPStatus}


def response_fields(answer: Response, server_fields: Fields) -> Fields:
    """Return the fields of a hot response. Raises ValueError for control characters."""
    fields = [
        _STATUSES[answer.status],
        *server_fields,
        NO_STORE,
        (b"content-type", answer.kind.encode()),
    ]
    if answer.pieces is None and answer.status != HTTPStatus.NO_CONTENT:
        fields.append((b"content-length", b"%d" % len(answer.body)))
    fields.append((b"x-request-id", answer.request_id))
    if answer.extra_headers:
        fields += _checked(answer.extra_headers)
    return fields


def refusal_response(
    refusal: HttpError, url: bytes, headers: Mapping[bytes, bytes], server_fields: Fields
) -> tuple[Fields, bytes]:
    """Return the fields and the body of an error response."""
    details = refusal_details(refusal, url, dict(headers))
    fields = [
        _STATUSES[details.status],
        *server_fields,
        (b"content-type", details.kind.encode()),
        (b"content-length", b"%d" % len(details.body)),
        *details.headers,
    ]
    return fields, details.body


def asgi_fields(headers: Iterable[tuple[bytes, bytes]]) -> tuple[Fields, int | None]:
    """Return the fields of an application's response, and its declared length.

    Fields about the connection are omitted (RFC 9113, section 8.2.2). Raises ValueError for a value with control characters.
    """
    fields = [
        (lower, value.strip())
        for name, value in _checked(headers)
        if (lower := name.lower()) not in _OF_CONNECTIONS
    ]
    length = dict(fields).get(b"content-length")
    return fields, None if length is None else int(length)


def _checked(headers: Iterable[tuple[bytes, bytes]]) -> Fields:
    checked = list(headers)
    if any(_CONTROL.search(value) for _, value in checked):
        raise ValueError("a header value has control characters")
    return checked
