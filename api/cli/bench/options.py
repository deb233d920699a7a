"""The words of a bench, as people type them."""

from enum import StrEnum


class What(StrEnum):
    """What is measured."""

    SEND = "send"
    RECEIVE = "receive"
    PUT = "put"
    READ = "read"
    END_TO_END = "end-to-end"


class Protocol(StrEnum):
    """How bodies are written."""

    JSON = "json"
    MSGPACK = "msgpack"


class Over(StrEnum):
    """How messages come to a receiver."""

    POLL = "poll"
    WEBSOCKET = "websocket"
