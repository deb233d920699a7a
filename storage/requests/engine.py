"""Request engine: addresses of replies, and waiting for them.

open ─▶ token ─▶ message with `:reply_to` ─▶ worker ─▶ reply(token) ─▶ wake-up ─▶ replies(token)

Opening a request writes nothing. A caller that waits holds no connection to a store, and may wait anywhere.
"""

import asyncio
import secrets
from collections.abc import Callable

import attrs

from storage.access.token_secret import TokenSecret
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import RequestNotFound, ValidationFailed
from storage.domain.requests.reply import NewReply, Replies
from storage.domain.requests.token import NONCE_BYTES, RequestId, RequestToken, nonce_of
from storage.hot_store.replies import ReplyStore
from storage.hot_store.wakeups import Wakeups
from storage.quotas.memory_guard import MemoryGuard


@attrs.define(eq=False, slots=False, kw_only=True)
class Requests:
    """Requests of a deployment.

    Every verb that takes a request raises RequestNotFound for one that was not made in its namespace, or whose replies have
    expired.
    """

    _hot: ReplyStore
    _token_secret: TokenSecret
    _wakeups: Wakeups
    _clock: Clock
    _memory_guard: MemoryGuard

    async def open(
        self,
        namespace: str,
        *,
        resource: str,
        timeout_ms: int = limits.REQUEST_TIMEOUT_MS_DEFAULT,
        replies_max: int = 1,
        reply_ttl_ms: int = limits.REPLY_TTL_MS_DEFAULT,
        idempotency_key: str = "",
    ) -> RequestId:
        """Return the address of replies for a message to `resource`, such as `queue/orders`.

        A repeat with the same key waits for the same replies. Raises ValidationFailed.
        """
        _check(timeout_ms, replies_max, reply_ttl_ms)
        secret = await self._token_secret.get()
        nonce = (
            nonce_of(idempotency_key, f"{namespace}/{resource}", secret)
            if idempotency_key
            else secrets.token_bytes(NONCE_BYTES)
        )
        deadline_ms = self._clock.now_ms() + timeout_ms
        is_repeatable = bool(idempotency_key)
        token = RequestToken(deadline_ms, replies_max, reply_ttl_ms, nonce, is_repeatable)
        return RequestId(token.sign(namespace, secret), namespace)

    async def reply(self, request: RequestId, reply: NewReply, *, key: str = "") -> None:
        """Reply to a request; a repeat with the same key adds nothing.

        Raises ReplyTooLate after its deadline, ReplyTaken if it has as many replies as it accepts; BacklogFull and QuotaExceeded if
        the store or the namespace has no capacity left.
        """
        token = await self.verify(request)
        if self._memory_guard.is_shedding:
            self._memory_guard.check(request.namespace)
        await self._hot.put(request.namespace, token, reply, key, self._clock.script_time())

    async def replies(
        self,
        request: RequestId,
        *,
        wait_ms: int = 0,
        is_client_connected: Callable[[], bool] = lambda: True,
    ) -> Replies:
        """Return the replies so far, after a wait of up to `wait_ms` until they are complete."""
        token = await self.verify(request)
        if not wait_ms:
            replies, _ = await self._read(request.namespace, token)
            return replies
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_ms / limits.SECOND_MS
        with self._wakeups.waiting((token.address,), alone=False) as waiter:
            while True:
                waiter.reset()
                replies, left_ms = await self._read(request.namespace, token)
                left_s = until - loop.time()
                if replies.is_complete or left_s <= 0 or not is_client_connected():
                    return replies
                await waiter.wait(min(left_s, left_ms / limits.SECOND_MS))

    async def verify(self, request: RequestId) -> RequestToken:
        """Return the terms of a request."""
        return RequestToken.verify(request, await self._token_secret.get())

    async def _read(self, namespace: str, token: RequestToken) -> tuple[Replies, int]:
        """Return the replies so far, and the time until the deadline. Raises RequestNotFound.

        Whoever reads after the deadline closes the request first: another caller's call with the same idempotency key may have made
        the message's token, with a later deadline.
        """
        now = self._clock.script_time()
        stored = await self._hot.get(namespace, token, now)
        if stored.now_ms >= token.expires_ms:
            raise RequestNotFound("The replies to this request have expired.")
        left_ms = token.deadline_ms - stored.now_ms
        if left_ms <= 0 and not stored.is_closed and len(stored.replies) < token.replies_max:
            stored = await self._hot.close(namespace, token, now)
        has_all = len(stored.replies) >= token.replies_max
        is_overdue = left_ms <= 0 or stored.is_closed
        return Replies(tuple(stored.replies), has_all or is_overdue, is_overdue), left_ms


def _check(timeout_ms: int, replies_max: int, reply_ttl_ms: int) -> None:
    """Raise ValidationFailed when the terms of a request exceed the limits."""
    if not 0 < timeout_ms <= limits.REQUEST_TIMEOUT_MS_MAX:
        raise ValidationFailed.at("/timeout_seconds", "must be 0.001 to 3600", "out_of_range")
    if not 1 <= replies_max <= limits.REPLIES_MAX:
        raise ValidationFailed.at("/replies_max", "must be 1 to 100", "out_of_range")
    if not limits.SECOND_MS <= reply_ttl_ms <= limits.REPLY_TTL_MS_MAX:
        raise ValidationFailed.at("/reply_ttl_seconds", "must be 1 to 3600", "out_of_range")
