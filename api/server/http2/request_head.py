"""Heads of HTTP/2 requests, checked and in the form that HTTP/1.1 requests have."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from api.errors import HttpError
from api.server.refusals import HEAD_TOO_LARGE, MALFORMED, NO_TUNNEL, URL_TOO_LONG
from storage.domain import limits

Fields = list[tuple[bytes, bytes]]

_METHOD = re.compile(rb"[A-Z]{1,32}")
_URL = re.compile(rb"/[!-\"$-~]*")  # visible ASCII without a fragment


class RequestHead(NamedTuple):
    """Method, path with query, and header fields with `host` among them.

    `length`: declared length of the body; None without a declaration.
    """

    method: bytes
    url: bytes
    fields: Fields
    length: int | None
    expects_continue: bool
    refusal: HttpError | None = None


def read_head(fields: Iterable[tuple[bytes, bytes]]) -> RequestHead:
    """Return the head of a request whose fields h2 has validated, with its refusal if any.

    RFC 9113, section 8.3.1; h2 has joined the crumbs of cookies (section 8.2.3).
    """
    method = url = authority = b""
    own: Fields = []
    length: int | None = None
    has_host = expects_continue = False
    for name, value in fields:
        if name[0] == 0x3A:
            if name == b":method":
                method = value
            elif name == b":path":
                url = value
            elif name == b":authority":
                authority = value
            continue
        own.append((name, value))
        if name == b"host":
            has_host = True
        elif name == b"content-length":
            length = int(value)
        elif name == b"expect":
            expects_continue = value.lower() == b"100-continue"
    if not has_host:
        own.append((b"host", authority))
    head = RequestHead(method, url, own, length, expects_continue)
    refusal = _refusal(head)
    return head if refusal is None else head._replace(refusal=refusal)


def _refusal(head: RequestHead) -> HttpError | None:
    if len(head.url) > limits.URL_BYTES_MAX:
        return URL_TOO_LONG
    if len(head.fields) > limits.HEAD_HEADERS_MAX or _size(head) > limits.HEAD_BYTES_MAX:
        return HEAD_TOO_LARGE
    if head.method == b"CONNECT":
        return NO_TUNNEL
    if not (_METHOD.fullmatch(head.method) and _URL.fullmatch(head.url)):
        return MALFORMED
    return None


def _size(head: RequestHead) -> int:
    return len(head.url) + sum([len(name) + len(value) for name, value in head.fields])
