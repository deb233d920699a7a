"""Wire forms of values: bodies, headers, times and durations.

A body travels as text, as a JSON value, or as base64, whichever represents it exactly:

    stored bytes               content type          JSON answer            MessagePack answer
    UTF-8 text                 any but JSON          "body": string         "body": bin
    a JSON value               application/json      "body": that value     "body": bin
    anything else              any                   "body_base64"          "body": bin
"""

import base64
import binascii
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from math import isfinite
from typing import Any

import msgspec

from api.http.codecs import JSON, media_type
from api.types import RequestHeaders
from storage.domain import clock, limits
from storage.domain.clock import EPOCH
from storage.domain.errors import ValidationFailed
from storage.domain.log.record_batch import RESERVED, Headers
from storage.domain.mirrors.progress import MIRROR_ORIGIN
from storage.domain.queues.message import check_header_names
from storage.domain.replays.replay import ORIGIN_HEADERS
from storage.domain.trace_context import TRACEPARENT, TRACESTATE, is_context

MILLISECOND = timedelta(milliseconds=1)

_FORM = "application/x-www-form-urlencoded"  # sent by `curl -d` for any bytes, so it is ignored
_text = msgspec.json.Decoder(str)
_any_json = msgspec.json.Decoder(msgspec.Raw)
_compact = msgspec.json.Encoder()


# ── Times and durations ──


def to_ms(seconds: float) -> int:
    """Convert a duration on the wire to milliseconds."""
    return round(seconds * limits.SECOND_MS)


def optional_ms(seconds: float | None) -> int | None:
    """Convert an optional duration to milliseconds."""
    return None if seconds is None else to_ms(seconds)


def to_seconds(ms: int) -> int | float:
    """Convert milliseconds to a duration on the wire, an integer where possible."""
    return ms // limits.SECOND_MS if ms % limits.SECOND_MS == 0 else ms / limits.SECOND_MS


rfc3339 = clock.rfc3339


def moment_ms(moment: datetime) -> int:
    """Convert a time with its zone to milliseconds since the epoch."""
    return (moment - EPOCH) // MILLISECOND


# ── Bodies ──


def body_from_json(
    value: msgspec.Raw | msgspec.UnsetType, encoded: str | msgspec.UnsetType, field: str
) -> tuple[bytes, str]:
    """Decode the body of a JSON request to its bytes and its implied content type.

    The type is JSON or none. Raises ValidationFailed unless exactly one of `field` and `<field>_base64` is given.
    """
    if isinstance(encoded, str):
        _check_alone(value, field)
        return from_base64(encoded, f"/{field}_base64"), ""
    if isinstance(value, msgspec.UnsetType):
        raise ValidationFailed.at(
            f"/{field}", f"'{field}' or '{field}_base64' is required", "required"
        )
    raw = bytes(value)
    if raw[0] == 0x22:  # a quotation mark
        try:
            return _text.decode(raw).encode(), ""
        except ValueError:
            raise _not_utf8(field) from None
    return _compacted(raw, field), JSON


def _check_alone(value: Any, field: str) -> None:
    if value is not msgspec.UNSET:
        raise ValidationFailed.at(
            f"/{field}_base64", f"Specify only one of '{field}' and '{field}_base64'", "conflict"
        )


def _compacted(raw: bytes, field: str) -> bytes:
    """Return the JSON without white space; numbers keep their digits."""
    try:
        raw.decode()
    except ValueError:
        raise _not_utf8(field) from None
    return msgspec.json.format(raw, indent=-1)


def _not_utf8(field: str) -> ValidationFailed:
    return ValidationFailed.at(f"/{field}", "Text must be UTF-8", "invalid_text")


def body_from_msgpack(
    value: Any, encoded: str | msgspec.UnsetType, field: str
) -> tuple[bytes, str]:
    """Decode the body of a MessagePack request like `body_from_json`; it may also be bin."""
    if isinstance(encoded, str):
        _check_alone(value, field)
        return from_base64(encoded, f"/{field}_base64"), ""
    if isinstance(value, bytes):
        return value, ""
    if isinstance(value, str):
        return value.encode(), ""
    if value is msgspec.UNSET:
        raise ValidationFailed.at(f"/{field}", f"'{field}' is required", "required")
    return _json_of(value, field), JSON


def _json_of(value: Any, field: str) -> bytes:
    _check_json_form(value, field)
    try:
        return _compact.encode(value)
    except (TypeError, ValueError, RecursionError):
        raise ValidationFailed.at(
            f"/{field}", "This value has no JSON form; send bin", "invalid"
        ) from None


def _check_json_form(value: Any, pointer: str) -> None:
    """Raise ValidationFailed for what JSON would lose: non-finite numbers and equal keys.

    In JSON the keys 1 and "1" are one, and NaN is null.
    """
    if isinstance(value, float) and not isfinite(value):
        raise ValidationFailed.at(f"/{pointer}", "NaN and infinity have no JSON form", "invalid")
    if isinstance(value, list):
        for index, item in enumerate(value):
            _check_json_form(item, f"{pointer}/{index}")
    elif isinstance(value, dict):
        names = {key if isinstance(key, str) else str(key) for key in value}
        if len(names) < len(value) or not all(type(key) in (str, int) for key in value):
            detail = "Keys must be distinct texts or whole numbers"
            raise ValidationFailed.at(f"/{pointer}", detail, "invalid")
        for key, item in value.items():
            _check_json_form(item, f"{pointer}/{key}")


def from_base64(encoded: str, pointer: str) -> bytes:
    """Decode standard base64. Raises ValidationFailed at `pointer`."""
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise ValidationFailed.at(pointer, "Invalid base64", "invalid_base64") from None


BodyMembers = tuple[Any, str | msgspec.UnsetType]
"""Values of `body` and `body_base64` in an answer; one of them is UNSET."""


def show_body(body: bytes, content_type: str) -> BodyMembers:
    """Convert a stored body for a JSON answer."""
    if content_type == JSON and (value := _as_json(body)):
        return value, msgspec.UNSET
    try:
        return body.decode(), msgspec.UNSET
    except UnicodeDecodeError:
        return msgspec.UNSET, base64.b64encode(body).decode()


def _as_json(body: bytes) -> msgspec.Raw | None:
    """Return the body as a JSON value, or None when it is not JSON."""
    try:
        body.decode()
        return _any_json.decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError):  # or nested too deeply
        return None


# ── Headers ──


def headers_from_json(headers: dict[str, str]) -> Headers:
    """Decode headers of a JSON or MessagePack request. Raises ValidationFailed."""
    decoded = tuple((name, "", value.encode()) for name, value in headers.items())
    check_header_names(decoded)
    return decoded


_VISIBLE_HEADERS = ORIGIN_HEADERS | {MIRROR_ORIGIN}


def show_headers(headers: Headers) -> tuple[dict[str, str], dict[str, str]]:
    """Return the headers with text values, and the others in base64.

    Reserved headers are left out, except those that state where a replayed or mirrored record came from.
    """
    texts: dict[str, str] = {}
    others: dict[str, str] = {}
    for name, _, value in headers:
        if name.startswith(RESERVED) and name not in _VISIBLE_HEADERS:
            continue
        try:
            texts[name] = value.decode()
        except UnicodeDecodeError:
            others[name] = base64.b64encode(value).decode()
    return texts, others


_HEADER_PREFIX = b"millstream-header-"


def header_names_from_http(headers: RequestHeaders) -> list[bytes]:
    """Return the names of the `Millstream-Header-<name>` headers of a raw request."""
    return [name for name in headers if name.startswith(_HEADER_PREFIX)]


def headers_from_http(headers: RequestHeaders) -> Headers:
    """Return the `Millstream-Header-<name>` headers of a raw request; names are in lower case.

    Raises ValidationFailed.
    """
    message_headers = tuple(
        (name.removeprefix(_HEADER_PREFIX).decode("latin-1"), "", value)
        for name, value in headers.items()
        if name.startswith(_HEADER_PREFIX)
    )
    check_header_names(message_headers)
    return message_headers


def content_type_from_http(headers: RequestHeaders) -> str:
    """Return the content type of a raw body, or none where it does not describe the bytes."""
    if media_type(headers) == _FORM:
        return ""
    return stated_content_type(headers)


def stated_content_type(headers: RequestHeaders) -> str:
    """Return the content type that a request states; empty if it states none."""
    return headers.get(b"content-type", b"").decode("latin-1")


def trace_headers(headers: RequestHeaders) -> Headers:
    """Return the request's W3C trace context as message headers; none when it is not valid."""
    parent = headers.get(b"traceparent")
    if parent is None or not is_context(parent):
        return ()
    context: Headers = ((TRACEPARENT, "", parent),)
    if state := headers.get(b"tracestate"):
        context = (*context, (TRACESTATE, "", state))
    return context


_KEY = re.compile(rb'"?([\x21\x23-\x7e]{1,255})"?')


def idempotency_key(headers: RequestHeaders) -> str:
    """Return the Idempotency-Key, quoted or bare; empty when missing. Raises ValidationFailed."""
    value = headers.get(b"idempotency-key")
    if value is None:
        return ""
    match = _KEY.fullmatch(value)
    if not match:
        raise ValidationFailed.at(
            "/Idempotency-Key", "A key must be 1 to 255 printable ASCII characters", "invalid"
        )
    return match[1].decode()


def http_number(headers: RequestHeaders, name: str) -> float | None:
    """Return a numeric header, or None when it is absent. Raises ValidationFailed."""
    value = headers.get(name.lower().encode())
    if value is None:
        return None
    if not re.fullmatch(rb"[0-9]{1,9}(\.[0-9]{1,9})?", value):
        raise ValidationFailed.at(f"/{name}", "must be a number of seconds", "invalid")
    return float(value)


def http_whole(headers: RequestHeaders, name: str) -> int:
    """Return an integer header, or 0 when it is absent. Raises ValidationFailed."""
    value = headers.get(name.lower().encode(), b"0")
    if not re.fullmatch(rb"[0-9]{1,9}", value):
        raise ValidationFailed.at(f"/{name}", "must be a whole number", "invalid")
    return int(value)


def http_text(headers: RequestHeaders, name: str) -> str:
    """Return a text header, or empty when it is absent.

    Raises ValidationFailed when it is not UTF-8.
    """
    try:
        return headers.get(name.lower().encode(), b"").decode()
    except UnicodeDecodeError:
        raise ValidationFailed.at(f"/{name}", "Text must be UTF-8", "invalid_text") from None


def total_bytes(bodies: Sequence[bytes]) -> int:
    """Return the total bytes of all bodies."""
    return sum(map(len, bodies))
