"""What a second call does: one row for each operation. The OpenAPI tells it, and clients retry by it.

It matters where the first call's outcome is unknown: its answer was lost, or said so. A call that was refused did
nothing, and whether it is worth repeating is in the problem's `retryable`.
"""

from enum import StrEnum


class Repeat(StrEnum):
    """safe: changes nothing more. keyed: the same, if both calls carry one Idempotency-Key.

    guarded: the same, if the body has the field that names the call. unsafe: may do it twice.
    """

    SAFE = "safe"
    KEYED = "keyed"
    GUARDED = "guarded"
    UNSAFE = "unsafe"


GUARDS: dict[str, tuple[str, ...]] = {
    "append_records_to_shard": ("producer", "expected_offset"),
    "join_group": ("member", "instance_id"),
    "receive_messages": ("attempt_id",),  # of a fifo queue
    "start_replay": ("id",),
}
"""The fields of which one guards a repeat."""

KEYED = frozenset({"append_columns", "append_records", "send_messages"})

UNSAFE = frozenset(
    {
        "purge_queue",  # drops what came since
        "redrive_queue",  # sends what died again since, and counts `messages_max` anew
        "resend_delivery",
        "reset_group",  # takes back what was read since
        "rotate_webhook_secret",  # makes another secret, and only the last answer shows the last one
        "start_move",
        "test_webhook",
    }
)


def repeat_of(operation: str) -> Repeat:
    """What a repeat of an operation does; most say what is to be, and may be said twice."""
    if operation in KEYED:
        return Repeat.KEYED
    if operation in GUARDS:
        return Repeat.GUARDED
    return Repeat.UNSAFE if operation in UNSAFE else Repeat.SAFE
