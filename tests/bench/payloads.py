"""Payloads: bodies of 256 bytes, single and in batches."""

import json
from collections.abc import Iterable

import msgspec

BODY_BYTES = 256
BODY = b"m" * BODY_BYTES
RECORDS = 500  # per produce call
GROUPS = 1_000

_pack = msgspec.msgpack.encode


def message_as_json() -> bytes:
    """A message."""
    return json.dumps({"body": BODY.decode()}).encode()


def messages(count: int) -> bytes:
    """A batch of messages, in MessagePack."""
    return _pack({"messages": [{"body": BODY}] * count})


def fifo_messages(groups: Iterable[int]) -> bytes:
    """A batch with a message per group, in MessagePack."""
    return _pack({"messages": [{"body": BODY, "group": f"group-{group}"} for group in groups]})


def columns() -> bytes:
    """A batch of messages in columns."""
    return _pack({"data": [BODY] * RECORDS, "keys": [f"key-{nth}" for nth in range(RECORDS)]})


def records() -> bytes:
    """A batch of RECORDS records with distinct keys, in MessagePack."""
    return _pack({"records": [{"data": BODY, "key": f"key-{nth}"} for nth in range(RECORDS)]})
