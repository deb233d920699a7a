"""Retry semantics: the effect of a second call, one row per operation.

The OpenAPI document publishes it, and clients retry by it. It matters where the first call's outcome is unknown: its
response was lost, or reported that. A rejected call did nothing, and the problem's `retryable` has whether it is worth
repeating.
"""

from enum import StrEnum


class Repeat(StrEnum):
    """Effect of a second call.

    safe: changes nothing more. keyed: none, if both calls have the same Idempotency-Key.
    guarded: none, if the body has the field that identifies the call. unsafe: may do it twice.
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

KEYED = frozenset(
    {"append_columns", "append_raw_record", "append_records", "send_messages", "send_raw_message"}
)

SAFE_POSTS = frozenset(
    {
        "cancel_job",
        "cancel_replay",
        "commit_offsets",
        "commit_staged",
        "enable_webhook",
        "flush_archive",
        "make_ticket",  # another one is good as well
        "pause_replay",
        "reshard_stream",  # what was split or merged is closed, and refused
        "resume_replay",
        "retry_job",
        "retry_replay",
        "send_heartbeat",
        "settle_messages",  # an acknowledgement may be given twice; other verdicts end the delivery
        "stage_records",  # what is not committed is forgotten
        "truncate_shard",
    }
)
"""They say what is to be. A POST is taken for unsafe unless it is here: the other methods are safe by what they are."""


def repeat_of(operation: str, method: str) -> Repeat:
    """Return the effect of repeating an operation."""
    if operation in KEYED:
        return Repeat.KEYED
    if operation in GUARDS:
        return Repeat.GUARDED
    return Repeat.SAFE if method != "post" or operation in SAFE_POSTS else Repeat.UNSAFE
