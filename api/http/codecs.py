"""Codecs between bytes and values: JSON, MessagePack, NDJSON and raw bodies.

A route names one codec for its requests. Responses are JSON unless `Accept` names MessagePack or, for responses with
lines, NDJSON.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import msgspec
from msgspec import inspect

from api.errors import HttpError, HttpErrorCode
from api.http.item_limits import check_json_items, check_msgpack_items
from api.http.surrogates import HALF_OF_PAIR, has_halves
from api.http.validation_errors import from_msgspec, nearest, types_at
from api.types import RequestHeaders
from storage.domain import limits
from storage.domain.errors import BatchTooLarge, FieldFault, ValidationFailed

JSON = "application/json"
MSGPACK = "application/msgpack"
NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
BYTES = "application/octet-stream"
UNNAMED = ""
"""Media type of a body without a Content-Type."""


In = TypeVar("In")
In_co = TypeVar("In_co", covariant=True)
Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)

_PLAIN = {
    b"application/json": JSON,
    b"application/msgpack": MSGPACK,
    b"application/x-ndjson": NDJSON,
}
_FIELD_PREFIX = b"millstream-"
_NAMESPACE = b"millstream-namespace"
ACKNOWLEDGE = b"millstream-acknowledge"
"""Header of a send or append that the primary of a replica set acknowledges alone, and of its answer."""
_OF_EVERY_CALL = (_NAMESPACE, ACKNOWLEDGE)
_SAME = {
    "application/x-msgpack": MSGPACK,
    "application/vnd.msgpack": MSGPACK,
    "application/jsonl": NDJSON,
}


def media_type(headers: RequestHeaders) -> str:
    """Return the media type without parameters, in lower case; `UNNAMED` when there is none."""
    value = headers.get(b"content-type", b"")
    plain = _PLAIN.get(value)
    if plain is not None:
        return plain
    name = value.partition(b";")[0].strip().lower().decode("latin-1")
    return _SAME.get(name, name)


def refuse_field_headers(headers: RequestHeaders, allowed: Collection[bytes] = ()) -> None:
    """Raise ValidationFailed for a `Millstream-…` header that has no meaning in the request.

    `allowed`: the names of those that have, as for raw bodies, which take their fields from headers.
    """
    for name in headers:
        if name.startswith(_FIELD_PREFIX) and name not in _OF_EVERY_CALL and name not in allowed:
            text = name.decode("latin-1")
            meant = nearest(text, [header.decode() for header in (*allowed, *_OF_EVERY_CALL)])
            detail = f"The header '{text}' has no meaning in this request" + meant
            raise ValidationFailed.at(f"/{text}", detail, "unknown_header")


class Codec(Protocol[In_co]):
    """Decoder of a route's body. `documented`: the struct of the OpenAPI; None for any bytes."""

    @property
    def documented(self) -> type[msgspec.Struct] | None: ...

    def decode(self, payload: bytes, headers: RequestHeaders) -> In_co: ...


class StructBody(Generic[In]):
    """Codec of a body that is one struct, as JSON or MessagePack.

    An empty body is the struct of defaults. `packed`: the struct in MessagePack, if it differs. Raises HttpError for malformed bytes and other media types, ValidationFailed for
    wrong content.
    """

    def __init__(self, kind: type[In], packed: type[In] | None = None) -> None:
        self._kind = kind
        self._json = msgspec.json.Decoder(kind)
        self._msgpack = msgspec.msgpack.Decoder(packed or kind)

    @property
    def documented(self) -> type[Any]:
        return self._kind

    def decode(self, payload: bytes, headers: RequestHeaders) -> In:
        kind = media_type(headers)
        if kind not in (JSON, MSGPACK, UNNAMED):
            raise unsupported(kind)
        refuse_field_headers(headers)
        if kind == MSGPACK:
            check_msgpack_items(payload)
            return decoding(self._msgpack.decode, payload, HttpErrorCode.MALFORMED_MSGPACK)
        check_json_items(payload)
        return decoding(self._json.decode, payload or b"{}", HttpErrorCode.MALFORMED_JSON)


class WireItem(Protocol[Item_co]):
    """An item of a batch, before decoding."""

    def to_domain(self) -> Item_co: ...


class Items(msgspec.Struct, Generic[Item], frozen=True):
    """The items of a batch. `single`: a single item was sent, and a single result is returned.

    `around` is the object that contains them, which may have more fields; None for lines and raw bodies.
    """

    values: list[Item]
    single: bool = False
    around: Any = None


def items_in(items: Items[Any]) -> int:
    """Return the number of items."""
    return len(items.values)


class ItemsBody(Generic[Item]):
    """Codec of one item, a batch of items, lines of items, or a raw body that is one item.

    `field` names the batch's list. `json` and `packed` are structs of one item that may have that
    list instead, `packed` in MessagePack if it differs; `raw` makes an item of the bytes of any other media type; `lines`: NDJSON is taken.
    `has_raw_endpoint`: another endpoint, which a refusal names, takes any JSON as an item.
    """

    def __init__(
        self,
        field: str,
        *,
        documented: type[msgspec.Struct],
        json: type[WireItem[Item]],
        packed: type[WireItem[Item]] | None = None,
        items_max: int,
        raw: Callable[[bytes, RequestHeaders], Item] | None = None,
        lines: bool = True,
        has_raw_endpoint: bool = False,
    ) -> None:
        self._has_raw_endpoint = has_raw_endpoint
        self.documented = documented
        self._field = field
        self._json = msgspec.json.Decoder(json)
        self._msgpack = msgspec.msgpack.Decoder(packed or json)
        self._items_max = items_max
        self._own_fields = _fields_of_item(json, field)
        self._raw = raw
        self._lines = lines

    def decode(self, payload: bytes, headers: RequestHeaders) -> Items[Item]:
        kind = media_type(headers)
        if kind in (JSON, MSGPACK, NDJSON):
            refuse_field_headers(headers)
        if kind in (JSON, NDJSON):
            check_json_items(payload)
        if kind == JSON:
            try:
                body = decoding(self._json.decode, payload, HttpErrorCode.MALFORMED_JSON)
            except ValidationFailed as error:
                raise self._naming_raw_endpoint(error) from None
            return self._one_or_many(body)
        if kind == MSGPACK:
            check_msgpack_items(payload)
            code = HttpErrorCode.MALFORMED_MSGPACK
            return self._one_or_many(decoding(self._msgpack.decode, payload, code))
        if kind == NDJSON and self._lines:
            lines = decoding(self._json.decode_lines, payload, HttpErrorCode.MALFORMED_JSON)
            return self._many(lines)
        if self._raw is None:
            raise unsupported(kind)
        return Items([self._raw(payload, headers)], single=True)

    def _naming_raw_endpoint(self, error: ValidationFailed) -> ValidationFailed:
        if not self._has_raw_endpoint:
            return error
        hint = f" To add this JSON itself, POST it to …/{self._field}/raw."
        return ValidationFailed(error.detail + hint, *error.faults)

    def _one_or_many(self, body: WireItem[Item]) -> Items[Item]:
        many = getattr(body, self._field)
        if many is msgspec.UNSET:
            return Items([body.to_domain()], True, body)
        self._check_nothing_beside_batch(body)
        return self._many(many, body)

    def _check_nothing_beside_batch(self, body: WireItem[Item]) -> None:
        """Raise ValidationFailed if the object has an item's fields as well as the batch."""
        for name, default in self._own_fields:
            if getattr(body, name) != default:
                detail = f"'{name}' cannot be combined with '{self._field}'; set it in each item"
                raise ValidationFailed.at(f"/{name}", detail, "conflict")

    def _many(self, items: Sequence[WireItem[Item]], around: Any = None) -> Items[Item]:
        if len(items) > self._items_max:
            raise BatchTooLarge(
                f"A batch can have at most {self._items_max} {self._field}.",
                items_max=self._items_max,
            )
        if not items:
            raise ValidationFailed.at(
                f"/{self._field}", "A batch must have at least one item", "required"
            )
        try:
            return Items([item.to_domain() for item in items], False, around)
        except ValidationFailed:
            raise self._blame(items) from None

    def _blame(self, items: Sequence[WireItem[Item]]) -> ValidationFailed:
        """Return the first validation error, with the item's index in its JSON Pointer."""
        for index, item in enumerate(items):
            try:
                item.to_domain()
            except ValidationFailed as error:
                return within(f"/{self._field}/{index}", error)
        raise AssertionError("an item was refused once and accepted the second time")


class BytesBody(Generic[Item]):
    """Codec of a body that is one item, whatever its content type."""

    documented = None

    def __init__(self, build: Callable[[bytes, RequestHeaders], Item]) -> None:
        self._build = build

    def decode(self, payload: bytes, headers: RequestHeaders) -> Items[Item]:
        return Items([self._build(payload, headers)], single=True)


def _fields_of_item(kind: type[Any], batch: str) -> list[tuple[str, Any]]:
    """Return the fields common to items and their batch's object, with their defaults."""
    [item] = [
        struct for struct in types_at(kind, [batch, "0"]) if isinstance(struct, inspect.StructType)
    ]
    empty = kind()
    return [
        (field.name, getattr(empty, field.name))
        for field in item.fields
        if hasattr(empty, field.name)
    ]


def within(place: str, error: ValidationFailed) -> ValidationFailed:
    """Return the error with its JSON Pointers prefixed by `place`."""
    faults = [FieldFault(place + fault.pointer, fault.detail, fault.code) for fault in error.faults]
    return ValidationFailed(error.detail, *faults)


def unsupported(kind: str, expected: str = f"{JSON} (curl --json)") -> HttpError:
    """Return the refusal of a media type that a route does not accept."""
    named = f"'{kind}'" if kind else "The body has no Content-Type"
    return HttpError(
        HttpErrorCode.UNSUPPORTED_MEDIA_TYPE,
        f"Content type {named} is not supported; send {expected}.",
    )


def decoding(decode: Callable[[bytes], In], payload: bytes, code: HttpErrorCode) -> In:
    """Return `decode(payload)`.

    Raises ValidationFailed if the content is wrong, HttpError if the bytes are.
    """
    try:
        return decode(payload)
    except msgspec.ValidationError as error:
        raise from_msgspec(error, _kind_of(decode)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        is_half = code is HttpErrorCode.MALFORMED_JSON and has_halves(payload)
        reason = HALF_OF_PAIR if is_half else error
        raise HttpError(code, f"The body cannot be parsed: {reason}.") from None


def _kind_of(decode: Callable[[bytes], Any]) -> Any:
    """Return the type that a decoder's method decodes, or None where it is unknown."""
    return getattr(getattr(decode, "__self__", None), "type", None)


class Located(msgspec.Struct):
    """Response with a `Location` header."""

    @property
    def location(self) -> str:
        """Path of the resource to request next."""
        raise NotImplementedError


class Lined(msgspec.Struct):
    """Response whose main part is a list that can be sent line by line."""

    lines_field: ClassVar[str]


_json = msgspec.json.Encoder()
_msgpack = msgspec.msgpack.Encoder()


def answer_type(headers: RequestHeaders) -> str:
    """Return the response format: JSON unless `Accept` names MessagePack or NDJSON."""
    accept = headers.get(b"accept")
    if accept is None or accept in (b"*/*", b"application/json"):
        return JSON
    if b"msgpack" in accept:
        return MSGPACK
    if b"ndjson" in accept or b"jsonl" in accept:
        return NDJSON
    return JSON


def encode_answer(answer: msgspec.Struct, kind: str) -> tuple[str, bytes]:
    """Return a response's media type and bytes; NDJSON only where the response has lines."""
    if kind == MSGPACK:
        return MSGPACK, _msgpack.encode(answer)
    if kind == NDJSON and isinstance(answer, Lined):
        return NDJSON, _encode_lines(answer)
    return JSON, _json.encode(answer)


def _encode_lines(answer: Lined) -> bytes:
    """Encode the items, a line each, and a last line of type 'end' with the other members."""
    field = answer.lines_field
    members = msgspec.structs.asdict(answer)
    end = {"type": "end", **{name: value for name, value in members.items() if name != field}}
    lines = _json.encode_lines(members[field])
    if lines.count(b"\n") != len(members[field]):  # a JSON body was stored with its line breaks
        lines = b"".join([_one_line(item) for item in members[field]])
    return (
        lines
        + _json.encode({name: value for name, value in end.items() if value is not msgspec.UNSET})
        + b"\n"
    )


def _one_line(item: Any) -> bytes:
    return msgspec.json.format(_json.encode(item), indent=-1) + b"\n"


def check_request_bytes(count: int) -> None:
    """Raise HttpError when a request's body is larger than any request may be."""
    if count > limits.REQUEST_BYTES_MAX:
        raise too_large(limits.REQUEST_BYTES_MAX)


def too_large(bytes_max: int) -> HttpError:
    """Return the refusal of a body larger than `bytes_max`."""
    return HttpError(
        HttpErrorCode.REQUEST_TOO_LARGE, f"The request body can have at most {bytes_max} bytes."
    )
