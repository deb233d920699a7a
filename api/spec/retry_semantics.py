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
    """What a repeat of an operation does."""
    if operation in KEYED:
        return Repeat.KEYED
    if operation in GUARDS:
        return Repeat.GUARDED
    return Repeat.SAFE if method != "post" or operation in SAFE_POSTS else Repeat.UNSAFE
