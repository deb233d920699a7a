"""Reason why a message was dead-lettered to another queue, as a reserved header.

A message has one such header at most: a later dead-lettering replaces it, and a move removes it.
"""

import msgspec

from storage.domain.log.record_batch import DEAD_LETTER, Header, Headers


class DeadLetterOrigin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The source that gave up on a message, why, and after how many failures.

    `source` has the form `queue:<name>`, `group:<name>` or `route:<topic>/<route>`. `last_failure_reason` and `details` are those of the last nack
    or reject; stored headers have the former name of `details`.
    """

    source: str
    reason: str
    died_at_ms: int
    failures: int
    crash_count: int
    last_failure_reason: str = ""
    details: str = msgspec.field(default="", name="response")

    def to_header(self) -> Header:
        """Encode the origin as a header of the message."""
        return DEAD_LETTER, "", _encoder.encode(self)


def origin_of(headers: Headers) -> DeadLetterOrigin | None:
    """Return the origin that a message's reserved headers state, or None."""
    for name, _, value in headers:
        if name == DEAD_LETTER:
            return _decoder.decode(value)
    return None


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(DeadLetterOrigin)
