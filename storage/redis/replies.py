"""Replies to requests: one hash for each request, which expires by itself."""

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from storage.domain.clock import ScriptTime
from storage.domain.errors import MillstreamError, ReplyTaken, ReplyTooLate
from storage.domain.requests.reply import NewReply, Reply
from storage.domain.requests.token import RequestToken
from storage.hot_store.replies import ReplyStore, StoredReplies
from storage.redis.keys import replies_key
from storage.redis.script_store import ScriptStore

_KEY_BYTES = 16
_REFUSALS: dict[int, type[MillstreamError]] = {1: ReplyTooLate, 2: ReplyTaken}
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(tuple[bytes, tuple[tuple[str, str, bytes], ...], str])


class RedisReplyStore(ScriptStore, ReplyStore):
    """Replies in one hash per request."""

    async def put(
        self, namespace: str, token: RequestToken, reply: NewReply, key: str, now: ScriptTime
    ) -> None:
        content = _encoder.encode((reply.body, reply.headers, reply.content_type))
        [outcome] = await self._pipeline.write(
            "put_reply",
            [replies_key(namespace, token.address)],
            now,
            token.deadline_ms,
            token.replies_max,
            token.stored_until_ms,
            _digest(key) if key else "",
            content,
        )
        if refusal := _REFUSALS.get(outcome):
            raise refusal

    async def get(self, namespace: str, token: RequestToken, now: ScriptTime) -> StoredReplies:
        key = replies_key(namespace, token.address)
        return _stored(await self._pipeline.read("get_replies", [key], now))

    async def close(self, namespace: str, token: RequestToken, now: ScriptTime) -> StoredReplies:
        key = replies_key(namespace, token.address)
        until = token.stored_until_ms
        return _stored(await self._pipeline.write("close_request", [key], now, until))


def _stored(answer: Sequence[Any]) -> StoredReplies:
    now_ms, closed, *items = answer
    return StoredReplies([_reply(item) for item in items], now_ms, bool(closed))


def _reply(item: bytes) -> Reply:
    at_ms, _, content = item.partition(b" ")
    return Reply(*_decoder.decode(content), int(at_ms))


def _digest(key: str) -> str:
    return hashlib.blake2b(key.encode(), digest_size=_KEY_BYTES).hexdigest()
