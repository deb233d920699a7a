"""Configuration of a topic, which is a stream: what it has beyond other streams."""

from enum import StrEnum

import msgspec

from storage.domain.errors import ValidationFailed
from storage.domain.names import TOPIC_PREFIX, StreamName


class Unmatched(StrEnum):
    """Handling of a message that no route takes."""

    DROP = "drop"
    """Accepted; it is in the topic's log only."""

    REFUSE = "refuse"
    """Refused with `unroutable`."""


class TopicSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration of a topic beyond that of its stream."""

    unmatched: Unmatched = Unmatched.DROP


def check_is_topic(name: StreamName, spec: TopicSpec | None) -> None:
    """Raise ValidationFailed unless the stream is a topic and has the name of one."""
    if spec is None or not name.is_of_topic:
        detail = f"Only the stream of a topic is named '{TOPIC_PREFIX}…'"
        raise ValidationFailed.at("/name", detail, "invalid_name")
