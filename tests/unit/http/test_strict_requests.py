"""Every request of the native protocols rejects members that it does not know."""

from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest
from fastapi.routing import APIRoute
from msgspec import inspect
from pydantic import BaseModel

from api.app import create_app
from api.app_routes import fast_routes
from api.errors import HttpErrorCode
from api.http.codecs import Codec, decoding
from api.native.native_route import NativeRoute
from api.rest.routes.messages import fast_routes as message_routes
from api.websocket.frames import ClientFrame
from storage.domain.errors import ValidationFailed

JSON = {b"content-type": b"application/json"}


def structs() -> Iterator[tuple[str, type[msgspec.Struct]]]:
    """Yield the structs of hot requests, queries and WebSocket frames, with what leads to them."""
    roots: list[tuple[str, Any]] = [("websocket", ClientFrame)]
    for route in fast_routes():
        roots += [(route.operation, kind) for kind in _decoded(route.body)]
        roots += [(route.operation, route.query)] if route.query else []
    seen: dict[type[msgspec.Struct], str] = {}
    for path, kind in roots:
        _collect(inspect.type_info(kind), path, seen)
    return ((path, kind) for kind, path in seen.items())


def _decoded(body: Codec[Any] | None) -> Iterator[Any]:
    for value in vars(body).values() if body is not None else ():
        if isinstance(value, msgspec.json.Decoder | msgspec.msgpack.Decoder):
            yield value.type


def _collect(kind: inspect.Type, path: str, seen: dict[type[msgspec.Struct], str]) -> None:
    match kind:
        case inspect.Metadata(type=inner):
            _collect(inner, path, seen)
        case inspect.UnionType(types=types):
            for inner in types:
                _collect(inner, path, seen)
        case inspect.ListType(item_type=inner) | inspect.VarTupleType(item_type=inner):
            _collect(inner, path, seen)
        case inspect.StructType(cls=cls, fields=fields) if cls not in seen:
            seen[cls] = path
            for field in fields:
                _collect(field.type, f"{path}/{field.encode_name}", seen)


@pytest.mark.parametrize(
    ("path", "kind"), [*structs()], ids=lambda value: getattr(value, "__name__", value)
)
def test_request_struct_rejects_unknown_members(path, kind):
    """A record's `partition_key` was dropped with 201, and the record had no key."""
    assert kind.__struct_config__.forbid_unknown_fields, path


def models() -> Iterator[type[BaseModel]]:
    """Yield the request models of the control plane, with those inside them."""
    pending: list[Any] = [
        route.body_field.field_info.annotation
        for route in create_app().control.state.cold_routes
        if isinstance(route, APIRoute) and route.body_field is not None
    ]
    seen: set[Any] = set()
    while pending:
        kind = pending.pop()
        if kind in seen:
            continue
        seen.add(kind)
        pending += get_args(kind)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            pending += [field.annotation for field in kind.model_fields.values()]
            yield kind


@pytest.mark.parametrize("model", [*models()], ids=lambda model: model.__name__)
def test_request_model_rejects_unknown_members(model):
    assert model.model_config.get("extra") == "forbid"


def test_native_routes_reject_unknown_parameters_headers_and_bodies():
    lenient = [
        route.path
        for route in create_app().control.state.cold_routes
        if isinstance(route, APIRoute)
        and route.path.startswith("/v1/")
        and route.include_in_schema
        and not isinstance(route, NativeRoute)
    ]

    assert lenient == []


@pytest.mark.parametrize(
    ("body", "pointer", "meant"),
    [
        (b'{"body": "a", "MessageGroupId": "g"}', "/MessageGroupId", "group"),
        (b'{"body": "a", "deduplication_id": "d"}', "/deduplication_id", "dedup_id"),
        (b'{"body": "a", "delay_second": 9}', "/delay_second", "delay_seconds"),
        (b'{"messages": [{"MessageBody": "a"}]}', "/messages/0/MessageBody", "body"),
        (b'{"body": "a", "messages": [{"body": "b"}]}', "/body", "messages"),
        (b'{"delay_seconds": 9, "messages": [{"body": "b"}]}', "/delay_seconds", "messages"),
    ],
)
def test_rejection_names_the_field_that_was_meant(body, pointer, meant):
    [send] = [route for route in message_routes.routes if route.operation == "send_messages"]
    assert send.body is not None

    with pytest.raises(ValidationFailed) as rejected:
        send.body.decode(body, JSON)

    [fault] = rejected.value.faults
    assert fault.pointer == pointer
    assert f"'{meant}'" in fault.detail


@pytest.mark.parametrize(
    "frame",
    [
        b'{"type": "subscribe", "id": "1", "sub": "s", "source": "stream:a", "strat": {"from": "earliest"}}',
        b'{"type": "ack", "sub": "s", "receipt_handles": ["h"], "handles": []}',
        b'{"type": "ping", "id": "1", "sub": "s"}',
    ],
)
def test_websocket_frame_with_unknown_member_is_rejected(frame):
    """`strat` instead of `start` began at the latest record, and the earlier ones never came."""
    decoder = msgspec.json.Decoder(ClientFrame)

    with pytest.raises(ValidationFailed):
        decoding(decoder.decode, frame, HttpErrorCode.MALFORMED_JSON)


@pytest.mark.parametrize("name", [b"millstream-delay-second", b"millstream-group", b"millstream-x"])
def test_field_header_beside_json_body_is_rejected(name):
    """The fields of a JSON body are in the body; its `Millstream-Group` header was ignored."""
    [send] = [route for route in message_routes.routes if route.operation == "send_messages"]
    assert send.body is not None

    with pytest.raises(ValidationFailed):
        send.body.decode(b'{"body": "a"}', {**JSON, name: b"1"})


def test_unknown_field_header_of_raw_body_is_rejected():
    [send] = [route for route in message_routes.routes if route.operation == "send_messages"]
    assert send.body is not None

    send.body.decode(b"a", {b"millstream-delay-seconds": b"1", b"millstream-header-x": b"1"})
    with pytest.raises(ValidationFailed, match="did you mean 'millstream-delay-seconds'"):
        send.body.decode(b"a", {b"millstream-delay-second": b"1"})
