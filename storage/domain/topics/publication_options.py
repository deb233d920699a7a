"""Options of a publication: deduplication id, delay, time to live and priority."""

import hashlib
from typing import NamedTuple

from storage.domain import limits
from storage.domain.errors import ValidationFailed
from storage.domain.log.record_batch import DEDUP_ID, Header, Headers
from storage.domain.streams.topic_spec import TopicSpec

DELAY_MS = ":delay_ms"
TTL_MS = ":ttl_ms"
PRIORITY = ":priority"
OPTION_HEADERS = frozenset({DEDUP_ID, DELAY_MS, TTL_MS, PRIORITY})


class PublicationOptions(NamedTuple):
    """Options of a publication, in reserved headers of its record.

    `delay_ms`: None for that of the route or the queue. `ttl_ms`: from the publication, and behind the delay; 0 for that of
    the route or the queue. `priority`: of copies in standard queues.
    """

    dedup_id: str = ""
    delay_ms: int | None = None
    ttl_ms: int = 0
    priority: int = 0

    def headers(self) -> Headers:
        """Return the headers of the options that are given."""
        headers: list[Header] = [(DEDUP_ID, "", self.dedup_id.encode())] if self.dedup_id else []
        if self.delay_ms is not None:
            headers.append((DELAY_MS, "", b"%d" % self.delay_ms))
        if self.ttl_ms:
            headers.append((TTL_MS, "", b"%d" % self.ttl_ms))
        if self.priority:
            headers.append((PRIORITY, "", b"%d" % self.priority))
        return tuple(headers)

    def check(self, topic: TopicSpec, pointer: str) -> None:
        """Raise ValidationFailed for options that the topic does not accept, below a pointer."""
        if self.delay_ms is not None and not 0 <= self.delay_ms <= limits.DELAY_MS_MAX:
            detail = "The delay must be 0 to 10 years"
            raise ValidationFailed.at(f"{pointer}/delay_seconds", detail, "out_of_range")
        if not 0 <= self.ttl_ms <= limits.TTL_MS_MAX:
            raise ValidationFailed.at(f"{pointer}/ttl_seconds", "0 to 10 years", "out_of_range")
        if not 0 <= self.priority <= limits.PRIORITY_MAX:
            detail = f"The priority must be 0 to {limits.PRIORITY_MAX}"
            raise ValidationFailed.at(f"{pointer}/priority", detail, "out_of_range")
        if len(self.dedup_id) > limits.GROUP_CHARACTERS_MAX:
            detail = f"At most {limits.GROUP_CHARACTERS_MAX} characters"
            raise ValidationFailed.at(f"{pointer}/dedup_id", detail, "too_long")
        if topic.is_fifo:
            self._check_order(pointer)
        elif self.dedup_id:
            detail = "A deduplication id requires a FIFO topic"
            raise ValidationFailed.at(f"{pointer}/dedup_id", detail, "not_supported")

    def _check_order(self, pointer: str) -> None:
        if self.delay_ms:
            detail = "FIFO topics do not support a delay per message"
            raise ValidationFailed.at(f"{pointer}/delay_seconds", detail, "not_supported")
        if self.priority:
            detail = "A message of a FIFO topic cannot have a priority"
            raise ValidationFailed.at(f"{pointer}/priority", detail, "not_supported")


NO_OPTIONS = PublicationOptions()


def options_of(headers: Headers) -> PublicationOptions:
    """Return the options in a record's headers."""
    values = {name: value for name, _, value in headers if name in OPTION_HEADERS}
    if not values:
        return NO_OPTIONS
    delay = values.get(DELAY_MS)
    return PublicationOptions(
        values.get(DEDUP_ID, b"").decode(),
        None if delay is None else int(delay),
        int(values.get(TTL_MS, 0)),
        int(values.get(PRIORITY, 0)),
    )


def content_dedup_id(body: bytes) -> str:
    """Return the deduplication id of a body without one: its SHA-256."""
    return hashlib.sha256(body).hexdigest()
