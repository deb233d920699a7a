"""The protocol's keep-alive timer, and the parts of uvicorn that it relies on.

Everything else is in contract/http/test_http.py.
"""

import ast
import asyncio
import inspect
from typing import Any

import pytest
from uvicorn import Config
from uvicorn.protocols.http import httptools_impl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from api.server import http_protocol
from api.server.http_protocol import FastCycle, FastPathProtocol
from api.server.response_encoder import _lines

KEEP_ALIVE_S = 5

RELIED_ON = {
    "self": (
        "_start_asgi_task",
        "_unset_keepalive_if_required",
        "access_log",
        "app",
        "client",
        "connections",
        "cycle",
        "expect_100_continue",
        "flow",
        "handle_websocket_upgrade",
        "headers",
        "limit_concurrency",
        "loop",
        "on_response_complete",
        "parser",
        "pipeline",
        "root_path",
        "scheme",
        "scope",
        "send_400_response",
        "server",
        "server_state",
        "shutdown",
        "tasks",
        "timeout_keep_alive",
        "timeout_keep_alive_handler",
        "timeout_keep_alive_task",
        "transport",
        "url",
    ),
    "self.flow": ("drain", "read_paused", "resume_reading", "write_paused"),
    "self.server_state": ("default_headers", "total_requests"),
}
"""Attributes of uvicorn's protocol and two of its parts that this one reads, replaces, calls or overrides."""

READ_OF_A_CYCLE = {
    "connection_lost": {"disconnected", "message_event", "response_complete"},
    "on_headers_complete": {"response_complete"},
    "shutdown": {"keep_alive", "response_complete"},
}
"""Attributes of the cycle that uvicorn's protocol reads or sets, by method that a hot request keeps."""

CALLBACKS = {
    "connection_lost",
    "connection_made",
    "data_received",
    "eof_received",
    "on_body",
    "on_headers_complete",
    "on_message_begin",
    "on_message_complete",
}
"""Attributes that asyncio and httptools define."""


class Loop:
    """A manual clock, and the calls scheduled on it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.later: list[float] = []

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, _: Any) -> asyncio.TimerHandle:
        self.later.append(seconds)
        return object()  # type: ignore[return-value]


class Transport:
    """A connection that is open until it is closed."""

    def __init__(self) -> None:
        self.closed = False

    def get_extra_info(self, _: str) -> None:
        return None

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True


class Cycle:
    """A request in progress or answered."""

    def __init__(self, *, response_complete: bool) -> None:
        self.response_complete = response_complete


async def app(scope: Any, receive: Any, send: Any) -> None:
    """An application that does nothing."""


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def transport() -> Transport:
    return Transport()


@pytest.fixture
def protocol(loop: Loop, transport: Transport) -> FastPathProtocol:
    config = Config(app, timeout_keep_alive=KEEP_ALIVE_S, log_config=None)
    config.load()
    made = FastPathProtocol(config, ServerState(), {}, loop)
    made.connection_made(transport)
    loop.later.clear()  # the slow-request check is tested elsewhere
    return made


def test_idle_connection_is_closed_after_timeout(protocol, loop, transport):
    protocol.on_response_complete()
    loop.now = KEEP_ALIVE_S
    protocol.timeout_keep_alive_handler()

    assert loop.later == [KEEP_ALIVE_S]
    assert transport.closed


def test_responses_share_one_keep_alive_timer(protocol, loop, transport):
    for loop.now in (0.0, 1.0, 2.0):
        protocol.on_response_complete()
    loop.now = KEEP_ALIVE_S
    protocol.timeout_keep_alive_handler()

    assert loop.later == [KEEP_ALIVE_S, KEEP_ALIVE_S - 3]
    assert not transport.closed


def test_connection_stays_open_while_response_is_pending(protocol, loop, transport):
    protocol.on_response_complete()
    protocol.cycle = Cycle(response_complete=False)
    loop.now = 10 * KEEP_ALIVE_S
    protocol.timeout_keep_alive_handler()

    assert loop.later == [KEEP_ALIVE_S, KEEP_ALIVE_S]
    assert not transport.closed


@pytest.mark.parametrize("value", [b"a\r\nx: y", b"a\nb", b"\r"])
def test_header_injection_is_rejected(value):
    with pytest.raises(ValueError, match="spans several lines"):
        _lines([(b"retry-after", value)])


@pytest.mark.parametrize(
    ("part", "name"), [(part, name) for part, names in RELIED_ON.items() for name in names]
)
def test_uvicorn_protocol_still_has_attribute(part, name, loop, transport):
    config = Config(app, log_config=None)
    config.load()
    uvicorns = HttpToolsProtocol(config, ServerState(), {}, loop)
    uvicorns.connection_made(transport)
    uvicorns.on_message_begin()

    assert hasattr(eval(part, {"self": uvicorns}), name)


def test_relied_on_attributes_are_all_named():
    module = ast.parse(inspect.getsource(http_protocol))
    [protocol] = [
        node
        for node in module.body
        if isinstance(node, ast.ClassDef) and node.name == FastPathProtocol.__name__
    ]
    used = {part: set[str]() for part in RELIED_ON}
    for node in ast.walk(protocol):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) in used:
            used[ast.unparse(node.value)].add(node.attr)
    own = {*vars(FastPathProtocol)} - {*vars(HttpToolsProtocol)}
    overridden = {*vars(FastPathProtocol)} & {*vars(HttpToolsProtocol)}
    used["self"] |= {name for name in overridden if not name.startswith("__")}
    used["self"] -= own | CALLBACKS

    assert {part: tuple(sorted(names)) for part, names in used.items()} == RELIED_ON


@pytest.mark.parametrize("name", [name for names in RELIED_ON.values() for name in names])
def test_docstring_names_attribute(name):
    assert name in (http_protocol.__doc__ or "").split()


def test_fast_cycle_has_what_uvicorn_reads_of_a_cycle():
    module = ast.parse(inspect.getsource(httptools_impl))
    [uvicorns] = [
        node
        for node in module.body
        if isinstance(node, ast.ClassDef) and node.name == HttpToolsProtocol.__name__
    ]
    methods = [node for node in uvicorns.body if getattr(node, "name", "") in READ_OF_A_CYCLE]
    read = {
        node.attr
        for method in methods
        for node in ast.walk(method)
        if isinstance(node, ast.Attribute)
        and ast.unparse(node.value) in ("self.cycle", "existing_cycle")
    }

    assert read == set().union(*READ_OF_A_CYCLE.values())
    assert read <= {*dir(FastCycle)}
    assert all(name in (http_protocol.__doc__ or "").split() for name in read)
