"""Body and headers of a message as members of a JSON object, each represented exactly."""

import base64
from typing import Any

import msgspec

from storage.domain.log.record_batch import RESERVED, Headers

JSON = "application/json"


def body_members(body: bytes, content_type: str) -> dict[str, Any]:
    """Return `body` as text, or a JSON value if that is its content type; or `body_base64`."""
    try:
        text = body.decode()
        if content_type == JSON:
            return {"body": msgspec.json.decode(body, type=msgspec.Raw)}
        return {"body": text}
    except (msgspec.DecodeError, RecursionError):  # or nested too deeply
        return {"body": text}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}


def header_members(headers: Headers) -> dict[str, Any]:
    """Return `headers`, and `headers_base64` for what is no text, without reserved ones."""
    texts: dict[str, str] = {}
    others: dict[str, str] = {}
    for name, _, value in headers:
        if name.startswith(RESERVED):
            continue
        try:
            texts[name] = value.decode()
        except UnicodeDecodeError:
            others[name] = base64.b64encode(value).decode()
    return {"headers": texts} | ({"headers_base64": others} if others else {})
