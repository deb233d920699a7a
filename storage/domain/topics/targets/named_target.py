"""Named target of copies: a queue, a stream or a topic of the source's namespace."""

from collections.abc import Mapping

import msgspec

from storage.domain.errors import FieldFault, ValidationFailed
from storage.domain.names import QueueName, StreamName, TopicName

TargetName = QueueName | StreamName | TopicName
"""Name of what receives copies."""

TARGETS: Mapping[str, type[TargetName]] = {
    "queue": QueueName,
    "stream": StreamName,
    "topic": TopicName,
}
"""Kinds of names, by the fields that have them."""


class NamedTarget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Queue, stream or topic. Exactly one is given."""

    queue: str | None = None
    stream: str | None = None
    topic: str | None = None

    @property
    def kind(self) -> str:
        """The field that is given; the last one without any."""
        return next((kind for kind in TARGETS if getattr(self, kind) is not None), "topic")

    @property
    def name(self) -> str:
        """The name that is given; empty without any."""
        return getattr(self, self.kind) or ""

    @property
    def label(self) -> str:
        """Kind and name, such as `queue:billing`."""
        return f"{self.kind}:{self.name}"

    def resolve(self, namespace: str) -> TargetName:
        """Return the name in a namespace. Raises ValidationFailed for an invalid one."""
        return TARGETS[self.kind](self.name, namespace)

    def stream_of(self, namespace: str) -> StreamName:
        """Return the stream that gets the copies, which may be a topic's.

        That of a queue is the one of the topic that takes its messages, if there is one.
        """
        name = self.resolve(namespace)
        if isinstance(name, QueueName):
            return TopicName.of_queue(name).stream
        return name.stream if isinstance(name, TopicName) else name

    def name_faults(self, pointer: str) -> list[FieldFault]:
        """Return the faults of the name, below a JSON Pointer."""
        try:
            name = TARGETS[self.kind](self.name)
        except ValidationFailed as error:
            return [FieldFault(f"{pointer}/{self.kind}", error.faults[0].detail)]
        if isinstance(name, StreamName) and name.is_of_topic:
            detail = "A topic is written by publishing"
            return [FieldFault(f"{pointer}/stream", detail, "not_allowed")]
        if isinstance(name, TopicName) and name.is_of_stream:
            return [FieldFault(f"{pointer}/topic", "Specify the stream as `stream`", "not_allowed")]
        if isinstance(name, TopicName) and name.queue is not None:
            return [FieldFault(f"{pointer}/topic", "Specify the queue as `queue`", "not_allowed")]
        if isinstance(name, QueueName) and name.route is not None:
            return [FieldFault(f"{pointer}/queue", "The queue belongs to a route", "not_allowed")]
        return []
