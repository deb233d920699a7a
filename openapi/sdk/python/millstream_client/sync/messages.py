# Generated from aio/messages.py by `make sdk`; changes are lost.
"""Received messages and their settlement."""

from typing import Any, Protocol

from millstream_client.messages import (
    Delivery,
    Received,
    Settled,
    Settlement,
    Verdict,
    replying,
)


class Settling(Protocol):
    """Receiver of settlements."""

    def settle_one(self, settlement: Settlement) -> Settled: ...


class Message(Received):
    """A received message. Settle it before `visible_at`; after that it is redelivered.

    Raises ItemRefused, with `receipt_handle_expired` if the delivery has ended.
    """

    __slots__ = ("_source", "settled")

    def __init__(self, delivery: Delivery, source: Settling) -> None:
        super().__init__(delivery)
        self._source = source
        self.settled = False

    def ack(self) -> None:
        """Acknowledge the message, which deletes it."""
        self._end(Verdict.ACK)

    def reply(
        self, body: Any, *, headers: dict[str, str] | None = None, content_type: str = ""
    ) -> None:
        """Reply to the request that this message is, and acknowledge it.

        Raises ValueError if it has no `reply_to`. If no reply is accepted any more, the message is acknowledged and ItemRefused is
        raised, with `reply_taken` or `reply_too_late`.
        """
        settled = self._source.settle_one(replying(self.delivery, body, headers, content_type))
        self.settled = True
        if settled.reply_error is not None:
            raise settled.reply_error

    def nack(self, delay_seconds: float | None = None, reason: str = "", details: str = "") -> None:
        """Report a failed attempt; the message is redelivered later.

        The delay is `delay_seconds`, or the queue's back-off. After its last attempt the message is dead-lettered. `details`, such as
        a stack trace, can have 4096 characters.
        """
        self._end(Verdict.NACK, delay_seconds, reason, details)

    def release(self) -> None:
        """Return the message without counting an attempt; it is ready immediately."""
        self._end(Verdict.RELEASE)

    def reject(self, reason: str = "", details: str = "") -> None:
        """Reject the message permanently; it is dead-lettered."""
        self._end(Verdict.REJECT, None, reason, details)

    def extend(self, visibility_timeout_seconds: float) -> None:
        """Extend the visibility timeout, counted from now."""
        self._source.settle_one(
            Settlement(
                self.receipt_handle,
                Verdict.EXTEND,
                visibility_timeout_seconds=visibility_timeout_seconds,
            )
        )

    def _end(
        self,
        verdict: Verdict,
        delay_seconds: float | None = None,
        reason: str = "",
        details: str = "",
    ) -> None:
        self._source.settle_one(
            Settlement(
                self.receipt_handle,
                verdict,
                delay_seconds=delay_seconds,
                reason=reason,
                details=details,
            )
        )
        self.settled = True
