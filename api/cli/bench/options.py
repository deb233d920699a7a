"""Choices of the bench's options."""

from enum import StrEnum


class BenchOperation(StrEnum):
    """Operation to measure."""

    SEND = "send"
    RECEIVE = "receive"
    PUT = "put"
    READ = "read"
    END_TO_END = "end-to-end"


class Protocol(StrEnum):
    """Encoding of request bodies."""

    JSON = "json"
    MSGPACK = "msgpack"


class Over(StrEnum):
    """Transport of messages to a receiver."""

    POLL = "poll"
    WEBSOCKET = "websocket"
