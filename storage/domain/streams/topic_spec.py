"""Configuration of a topic, which is a stream: what it has beyond other streams."""

from enum import StrEnum

import msgspec
from msgspec.structs import replace

from storage.domain.errors import FieldFault, ValidationFailed
from storage.domain.names import TOPIC_PREFIX, LogId, StreamName

SCOPE_REQUIRED = "A FIFO topic with several shards requires the deduplication scope 'key'"


class TopicType(StrEnum):
    """Treatment of repeated messages.

    standard: each publication is a message. fifo: each has a key and a deduplication id, and a repeated id adds nothing
    for five minutes.
    """

    STANDARD = "standard"
    FIFO = "fifo"


class TopicDedupScope(StrEnum):
    """Scope in which a deduplication id is unique for its window: the topic, or each key."""

    TOPIC = "topic"
    KEY = "key"


class Unmatched(StrEnum):
    """Handling of a message that no route takes."""

    DROP = "drop"
    """Accepted; it is in the topic's log only."""

    REFUSE = "refuse"
    """Refused with `unroutable`; a message of a queue becomes a dead letter of it."""


class TopicSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration of a topic beyond that of its stream.

    `type` and `dedup_scope` are immutable: a key's ids are in the logs that had the key, and those of a topic in its one log.
    `queue_id` is the log of the queue whose messages it takes; empty for a topic that is published to. A stored topic has
    `unmatched`; None in a request is the default.
    """

    type: TopicType = TopicType.STANDARD
    unmatched: Unmatched | None = None
    deduplicate_by_content: bool = False
    dedup_scope: TopicDedupScope = TopicDedupScope.TOPIC
    queue_id: LogId = ""

    def with_source(self, queue_id: LogId) -> "TopicSpec":
        """Return the configuration of a topic that takes the messages of a queue, or of none.

        By default the unmatched messages of a queue are refused, since nothing else would have them.
        """
        default = Unmatched.REFUSE if queue_id else Unmatched.DROP
        return replace(self, queue_id=queue_id, unmatched=self.unmatched or default)

    @property
    def refuses_unmatched(self) -> bool:
        """True if a message that no route takes is refused."""
        return self.unmatched is Unmatched.REFUSE

    @property
    def is_fifo(self) -> bool:
        """True if publications have a key and a deduplication id."""
        return self.type is TopicType.FIFO

    @property
    def has_one_shard(self) -> bool:
        """True if the topic cannot have several shards."""
        is_in_order = self.is_fifo and self.dedup_scope is TopicDedupScope.TOPIC
        return is_in_order or bool(self.queue_id)

    def faults(self, shards: int) -> list[FieldFault]:
        """Return the faults of the configuration of a topic with so many shards."""
        if self.queue_id:
            return self._faults_of_queue(shards)
        if self.has_one_shard and shards > 1:
            return [FieldFault("/dedup_scope", SCOPE_REQUIRED, "required")]
        has_scope = self.dedup_scope is not TopicDedupScope.TOPIC
        if not self.is_fifo and (self.deduplicate_by_content or has_scope):
            detail = "Deduplication requires a FIFO topic"
            return [FieldFault("/dedup_scope", detail, "not_supported")]
        return []

    def _faults_of_queue(self, shards: int) -> list[FieldFault]:
        if shards > 1:
            detail = "The topic of a queue's routes has one shard"
            return [FieldFault("/shards", detail, "not_supported")]
        if self.is_fifo:
            detail = "The topic of a queue's routes is standard; it keeps the order of each group"
            return [FieldFault("/type", detail, "not_supported")]
        return []

    def refuse_change(self, new: "TopicSpec") -> None:
        """Raise ValidationFailed for a change of what is immutable."""
        if new.type is not self.type:
            detail = f"The type of a topic is immutable; this topic is {self.type}."
            raise ValidationFailed.at("/type", detail, "immutable")
        if new.queue_id != self.queue_id:
            detail = "The topic takes the messages of a queue that was deleted; delete the topic"
            raise ValidationFailed.at("/name", detail, "conflict")
        if new.dedup_scope is not self.dedup_scope:
            detail = (
                f"The deduplication scope of a topic is immutable; this one is {self.dedup_scope}."
            )
            raise ValidationFailed.at("/dedup_scope", detail, "immutable")

    def dedup_key(self, key: str, dedup_id: str) -> str:
        """Return what is unique in a log for the deduplication id of a message with a key."""
        return f"{key}\0{dedup_id}" if self.dedup_scope is TopicDedupScope.KEY else dedup_id


def check_is_topic(name: StreamName, spec: TopicSpec | None) -> None:
    """Raise ValidationFailed unless the stream is a topic and has the name of one."""
    if spec is None or not name.is_of_topic:
        detail = f"Only the stream of a topic is named '{TOPIC_PREFIX}…'"
        raise ValidationFailed.at("/name", detail, "invalid_name")
