"""Parameters of a receive, and their limits."""

import msgspec

from storage.domain import limits
from storage.domain.errors import ValidationFailed
from storage.domain.queues.consumer import QueueConsumer


class ReceiveRequest(msgspec.Struct, frozen=True, gc=False):
    """The parameters of a receive.

    `visibility_timeout_ms` None: the queue's.
    """

    messages_max: int
    visibility_timeout_ms: int | None
    attempt_id: str
    strict_attempt: bool
    bytes_max: int
    consumer: QueueConsumer | None

    def check(self) -> None:
        """Raise ValidationFailed for a parameter that exceeds its limits."""
        if not 1 <= self.messages_max <= limits.RECEIVE_MESSAGES_MAX:
            raise ValidationFailed.at(
                "/messages_max", f"must be 1 to {limits.RECEIVE_MESSAGES_MAX}", "out_of_range"
            )
        if not 0 <= (self.visibility_timeout_ms or 0) <= limits.VISIBILITY_TIMEOUT_MS_MAX:
            raise ValidationFailed.at(
                "/visibility_timeout_seconds", "must be 0 to 43200", "out_of_range"
            )
        if len(self.attempt_id) > limits.ATTEMPT_ID_CHARACTERS_MAX:
            raise ValidationFailed.at("/attempt_id", "At most 128 characters", "too_long")


def check_wait(wait_ms: int) -> None:
    """Raise ValidationFailed for a wait that exceeds its limit."""
    if not 0 <= wait_ms <= limits.WAIT_MS_MAX:
        raise ValidationFailed.at("/wait_seconds", "must be 0 to 20", "out_of_range")
