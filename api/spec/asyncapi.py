"""The AsyncAPI 3.0.0 document of the WebSocket endpoint, made of the frames' types."""

import re
from importlib.metadata import version
from typing import Any, get_args

import msgspec

from api.http.codecs import JSON, MSGPACK
from api.native.messages import MessageIn
from api.native.publications import PublicationIn
from api.native.records import RecordIn
from api.native.settlements import SettlementReply
from api.spec.components import problem_schema, schemas_of
from api.spec.frame_examples import EXAMPLES
from api.spec.generator_dialect import without_deprecated_requirements
from api.websocket.codec import WHERE
from api.websocket.frames import (
    JSON_PROTOCOL,
    MSGPACK_PROTOCOL,
    PROTOCOLS,
    ClientFrame,
    ClientPing,
    ClientReply,
    Close,
    Credit,
    GiveUp,
    Hello,
    Publish,
    Request,
    ServerError,
    ServerFrame,
    ServerOk,
    ServerPong,
    ServerReply,
    Settling,
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
    Request: (ServerReply, ServerError),
    ClientReply: _DONE_OR_NOT,
    Unsubscribe: _DONE_OR_NOT,
    ClientPing: (ServerPong, *_DONE_OR_NOT),
    **dict.fromkeys((*get_args(Settling), Credit, GiveUp), _DONE_OR_NOT),
}

CLOSE_CODES: dict[int, str] = {
    Close.NORMAL: "The client closed the connection.",
    Close.GOING_AWAY: "The page or the server is going away.",
    Close.INTERNAL_ERROR: "Internal error. The service's log contains the request id.",
    Close.RESTART: "The server is restarting.",
    Close.DRAINING: "The server is shutting down; reconnect to another or the next one.",
    Close.HEARTBEAT_MISSED: "The client sent nothing for a heartbeat interval plus the "
    "pong timeout.",
    Close.SLOW_CONSUMER: "Queued frames could not be sent for too long.",
    Close.SUPERSEDED: "Another connection resumed the session.",
    Close.CREDENTIAL_ENDED: "The credential was revoked, expired, or has different "
    "permissions now.",
    Close.CLOSED_BY_OPERATOR: "An operator closed it.",
    Close.PROTOCOL_ERROR: "Invalid or unexpected frame.",
    Close.UNAUTHENTICATED: "Missing or invalid credentials in the upgrade or the `hello`.",
    Close.HELLO_TIMEOUT: "No `hello` arrived in time.",
    Close.TOO_MANY: "The namespace has reached its connection limit, which was detected "
    "after the `hello`.",
    Close.FRAME_TOO_LARGE: "A frame was too large.",
}

_DESCRIPTION = f"""\
Queues, streams and topics over one WebSocket: messages with acknowledgements, shards of a consumer group, records from any position, publishing, and requests with replies.

A WebSocket message is one frame or a list of frames. The subprotocol selects the encoding: `{JSON_PROTOCOL}`, which is also
the default, for JSON text messages; `{MSGPACK_PROTOCOL}` for MessagePack binary messages, in which bodies and data are bin. The first frame is `hello`. A frame with
an `id` is answered by one `ok` or `error` with the same id; a `request` by `reply` or `error`. Fields have the same names as in the REST API; every `problem` is one of its problems.

A rejected upgrade is answered with an HTTP problem.
"""


def build_asyncapi() -> Document:
    """Build the complete document; the same code gives the same bytes."""
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
                "description": "Millstream on this machine.",
            }
        },
        "channels": {CHANNEL: _channel(frames)},
        "operations": _operations(),
        "components": {
            "messages": {frame.__name__: _message(frame) for frame in frames},
            "schemas": {
                name: without_deprecated_requirements(schema)
                for name, schema in sorted(schemas.items())
            },
        },
    }


def _channel(frames: tuple[type[msgspec.Struct], ...]) -> Document:
    return {
        "address": WHERE,
        "title": "A session",
        "description": f"""\
The close code gives the reason and whether to reconnect.

{_code_table()}""",
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
                "description": "Encoding of frames.",
            }
        },
    }


def _code_table() -> str:
    rows = [
        f"| {code} | {'yes' if is_worth_coming_back(code) else 'no'} | {sentence} |"
        for code, sentence in CLOSE_CODES.items()
    ]
    return "\n".join(["| code | reconnect | |", "|---|---|---|", *rows])


def _message(frame: type[msgspec.Struct]) -> Document:
    summary, rest = _error_messages(frame)
    return {
        "name": str(frame.__struct_config__.tag),
        "title": frame.__name__,
        "summary": summary,
        **({"description": rest} if rest else {}),
        "payload": {"$ref": _SCHEMAS.format(name=frame.__name__)},
        "examples": [{"name": "example", "payload": EXAMPLES[frame]}],
    }


def _error_messages(frame: type[msgspec.Struct]) -> tuple[str, str]:
    """Return the first sentence of a frame's docstring, and the rest."""
    text = " ".join((frame.__doc__ or "").split())
    summary, _, rest = text.partition(". ")
    return (f"{summary}." if rest else text), rest


def _operations() -> Document:
    """Return the operations of the server: it receives client frames and sends the others."""
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
        "summary": _error_messages(frame)[0],
        "messages": [{"$ref": _IN_CHANNEL.format(name=frame.__name__)}],
    }


def _snake(frame: type[msgspec.Struct]) -> str:
    """Return a frame's name in snake case, without its side.

    `ServerOk` is `ok` between the two; frames of both sides differ by direction.
    """
    name = frame.__name__.removeprefix("Client").removeprefix("Server")
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _schemas() -> Document:
    """Return the frames' schemas.

    Includes what msgspec leaves open: items that are read later, and problems.
    """
    kinds = (*CLIENT_FRAMES, *SERVER_FRAMES, MessageIn, RecordIn, PublicationIn, SettlementReply)
    schemas = schemas_of(kinds, _SCHEMAS)
    _set_raw_parts(schemas)
    schemas["ServerError"]["properties"]["problem"] = {"$ref": _SCHEMAS.format(name="Problem")}
    schemas["Problem"] = problem_schema()
    plain: Document = msgspec.json.decode(msgspec.json.encode(schemas))
    return plain


def _set_raw_parts(schemas: Document) -> None:
    """Set the schemas of the parts of frames that are decoded for the queue, stream or topic."""
    message, record, publication, reply = (
        {"$ref": _SCHEMAS.format(name=kind.__name__)}
        for kind in (MessageIn, RecordIn, PublicationIn, SettlementReply)
    )
    items = {"anyOf": [message, record, publication]}
    schemas["Publish"]["properties"]["items"]["items"] = items
    schemas["Request"]["properties"]["message"] = {"anyOf": [message, publication]}
    for frame in ("Ack", "ClientReply"):
        schemas[frame]["properties"]["reply"] = reply
