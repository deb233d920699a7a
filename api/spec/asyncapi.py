"""The AsyncAPI 3.0.0 document of the WebSocket endpoint, made of the frames' types."""

import re
from importlib.metadata import version
from typing import Any, get_args

import msgspec

from api.http.codecs import JSON, MSGPACK
from api.native.messages import MessageIn
from api.native.records import RecordIn
from api.spec.components import problem_schema, schemas_of
from api.spec.frame_examples import EXAMPLES
from api.websocket.codec import WHERE
from api.websocket.frames import (
    JSON_PROTOCOL,
    MSGPACK_PROTOCOL,
    PROTOCOLS,
    Ack,
    ClientFrame,
    ClientPing,
    Close,
    Extend,
    Hello,
    Nack,
    Publish,
    Reject,
    Release,
    ServerError,
    ServerFrame,
    ServerOk,
    ServerPong,
    Subscribe,
    Unsubscribe,
    Welcome,
    is_worth_coming_back,
)

Document = dict[str, Any]

ASYNCAPI_VERSION = "3.0.0"
CHANNEL = "socket"
CLIENT_FRAMES: tuple[type[msgspec.Struct], ...] = get_args(ClientFrame)
SERVER_FRAMES: tuple[type[msgspec.Struct], ...] = get_args(ServerFrame)

_SCHEMAS = "#/components/schemas/{name}"
_MESSAGES = "#/components/messages/{name}"
_IN_CHANNEL = f"#/channels/{CHANNEL}/messages/{{name}}"

_DONE_OR_NOT = (ServerOk, ServerError)
_ANSWERS: dict[type[msgspec.Struct], tuple[type[msgspec.Struct], ...]] = {
    Hello: (Welcome, ServerError),
    Subscribe: _DONE_OR_NOT,
    Publish: _DONE_OR_NOT,
    Unsubscribe: _DONE_OR_NOT,
    ClientPing: (ServerPong,),
    **dict.fromkeys((Ack, Nack, Release, Extend, Reject), _DONE_OR_NOT),
}

CLOSE_CODES: dict[int, str] = {
    Close.NORMAL: "The client closed.",
    Close.GOING_AWAY: "The page, or the server, is going away.",
    Close.INTERNAL_ERROR: "Something failed inside Millstream; its log has the request id.",
    Close.RESTART: "The server restarts.",
    Close.DRAINING: "The server ends; another one, or the next one, has the session's place.",
    Close.HEARTBEAT_MISSED: "Nothing came from the client for a heartbeat and the pong timeout.",
    Close.SLOW_CONSUMER: "What waited could not be sent for too long.",
    Close.TAKEN_OVER: "Another socket resumed the session.",
    Close.CREDENTIAL_ENDED: "The credential was revoked, has expired, or gives other rights now.",
    Close.CLOSED_BY_OPERATOR: "An operator closed it.",
    Close.PROTOCOL_ERROR: "What came was no frame, or not at its time.",
    Close.UNAUTHENTICATED: "Nobody is known by what the upgrade or the `hello` showed.",
    Close.HELLO_TIMEOUT: "No `hello` came in time.",
    Close.TOO_MANY: "The namespace has as many connections as it may, as was found after the `hello`.",
    Close.FRAME_TOO_LARGE: "A frame was larger than any may be.",
}

_DESCRIPTION = f"""\
Queues and streams over one WebSocket: work with acknowledgements, the shards of a consumer group, records from any position, and publishing.

A WebSocket message is one frame or a list of frames. The subprotocol says how they are written: `{JSON_PROTOCOL}`, which is also what is
spoken without one, as JSON text; `{MSGPACK_PROTOCOL}` as MessagePack in binary messages, where bodies and data are bin. The first frame is `hello`. A frame with
an `id` is answered by one `ok` or `error` that has it. Every field is named as in the REST API; every `problem` is one of its problems.

What refuses the upgrade is an HTTP problem.
"""


def build_asyncapi() -> Document:
    """The whole document; the same code gives the same bytes."""
    schemas = _schemas()
    frames = (*CLIENT_FRAMES, *SERVER_FRAMES)
    return {
        "asyncapi": ASYNCAPI_VERSION,
        "info": {
            "title": "Millstream push",
            "version": version("millstream"),
            "description": _DESCRIPTION,
            "license": {
                "name": "Apache-2.0",
                "url": "https://www.apache.org/licenses/LICENSE-2.0",
            },
        },
        "defaultContentType": JSON,
        "servers": {
            "local": {
                "host": "127.0.0.1:8080",
                "protocol": "ws",
                "description": "A Millstream on this machine.",
            }
        },
        "channels": {CHANNEL: _channel(frames)},
        "operations": _operations(),
        "components": {
            "messages": {frame.__name__: _message(frame) for frame in frames},
            "schemas": dict(sorted(schemas.items())),
        },
    }


def _channel(frames: tuple[type[msgspec.Struct], ...]) -> Document:
    return {
        "address": WHERE,
        "title": "A session",
        "description": f"The code that the server closes with says why, and whether to come back.\n\n{_code_table()}",
        "servers": [{"$ref": "#/servers/local"}],
        "messages": {
            frame.__name__: {"$ref": _MESSAGES.format(name=frame.__name__)} for frame in frames
        },
        "bindings": {"ws": {"method": "GET", "headers": _upgrade_headers()}},
        "x-subprotocols": {JSON_PROTOCOL: JSON, MSGPACK_PROTOCOL: MSGPACK},
        "x-close-codes": [
            {
                "code": code,
                "description": CLOSE_CODES[code],
                "reconnect": is_worth_coming_back(code),
            }
            for code in CLOSE_CODES
        ],
    }


def _upgrade_headers() -> Document:
    return {
        "type": "object",
        "properties": {
            "Sec-WebSocket-Protocol": {
                "type": "string",
                "enum": list(PROTOCOLS),
                "default": JSON_PROTOCOL,
                "description": "How frames are written.",
            }
        },
    }


def _code_table() -> str:
    rows = [
        f"| {code} | {'yes' if is_worth_coming_back(code) else 'no'} | {sentence} |"
        for code, sentence in CLOSE_CODES.items()
    ]
    return "\n".join(["| code | come back | |", "|---|---|---|", *rows])


def _message(frame: type[msgspec.Struct]) -> Document:
    summary, rest = _told(frame)
    return {
        "name": str(frame.__struct_config__.tag),
        "title": frame.__name__,
        "summary": summary,
        **({"description": rest} if rest else {}),
        "payload": {"$ref": _SCHEMAS.format(name=frame.__name__)},
        "examples": [{"name": "example", "payload": EXAMPLES[frame]}],
    }


def _told(frame: type[msgspec.Struct]) -> tuple[str, str]:
    """The first sentence of a frame's docstring, and what follows it."""
    text = " ".join((frame.__doc__ or "").split())
    summary, _, rest = text.partition(". ")
    return (f"{summary}." if rest else text), rest


def _operations() -> Document:
    """From the server's side: it receives what a client says, and sends the rest."""
    received = {f"receive_{_snake(frame)}": _received(frame) for frame in CLIENT_FRAMES}
    sent = {f"send_{_snake(frame)}": _operation("send", frame) for frame in SERVER_FRAMES}
    return {**received, **sent}


def _received(frame: type[msgspec.Struct]) -> Document:
    operation = _operation("receive", frame)
    if answers := _ANSWERS.get(frame):
        operation["reply"] = {
            "channel": {"$ref": f"#/channels/{CHANNEL}"},
            "messages": [{"$ref": _IN_CHANNEL.format(name=one.__name__)} for one in answers],
        }
    return operation


def _operation(action: str, frame: type[msgspec.Struct]) -> Document:
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{CHANNEL}"},
        "summary": _told(frame)[0],
        "messages": [{"$ref": _IN_CHANNEL.format(name=frame.__name__)}],
    }


def _snake(frame: type[msgspec.Struct]) -> str:
    """`ServerOk` is `ok` between the two; what both sides say is told apart by its direction."""
    name = frame.__name__.removeprefix("Client").removeprefix("Server")
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _schemas() -> Document:
    """The frames' schemas, with what msgspec leaves open: items that are read later, and problems."""
    kinds = (*CLIENT_FRAMES, *SERVER_FRAMES, MessageIn, RecordIn)
    schemas = schemas_of(kinds, _SCHEMAS)
    items = [{"$ref": _SCHEMAS.format(name=kind.__name__)} for kind in (MessageIn, RecordIn)]
    schemas["Publish"]["properties"]["items"]["items"] = {"anyOf": items}
    schemas["ServerError"]["properties"]["problem"] = {"$ref": _SCHEMAS.format(name="Problem")}
    schemas["Problem"] = problem_schema()
    plain: Document = msgspec.json.decode(msgspec.json.encode(schemas))
    return plain
