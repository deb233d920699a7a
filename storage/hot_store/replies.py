"""Verbs of the replies to requests."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from storage.domain.clock import ScriptTime
from storage.domain.requests.reply import NewReply, Reply
from storage.domain.requests.token import RequestToken


class StoredReplies(NamedTuple):
    """Replies to a request in the order of their acceptance, and the store's time.

    `is_closed`: no further one is accepted, whatever the deadline of its token.
    """

    replies: Sequence[Reply]
    now_ms: int
    is_closed: bool


class ReplyStore(Protocol):
    """Replies by request. Every method raises StorageUnavailable or StorageBusy."""

    async def put(
        self, namespace: str, token: RequestToken, reply: NewReply, key: str, now: ScriptTime
    ) -> None:
        """Add a reply, once for each `key` that is not empty.

        Raises ReplyTooLate, ReplyTaken, OutcomeUnknown.
        """
        ...

    async def get(self, namespace: str, token: RequestToken, now: ScriptTime) -> StoredReplies:
        """Return the replies so far."""
        ...

    async def close(self, namespace: str, token: RequestToken, now: ScriptTime) -> StoredReplies:
        """Accept no further replies; return those that were accepted. Raises OutcomeUnknown."""
        ...
