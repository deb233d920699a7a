"""References between definitions: targets of dead letters, and names in common."""

from storage.catalog.cached_definitions import CachedDefinitions
from storage.domain.errors import QueueNotFound, StreamNotFound, StreamReadOnly, ValidationFailed
from storage.domain.names import QueueName, StreamName, TopicName
from storage.domain.queues.queue import Queue, QueueSpec, QueueType
from storage.domain.streams.stream import Stream, StreamSpec
from storage.domain.streams.topic_spec import check_is_topic


class DefinitionReferences:
    """Check of what a definition refers to, among the queues and the streams that there are."""

    def __init__(
        self,
        queues: CachedDefinitions[QueueName, Queue],
        streams: CachedDefinitions[StreamName, Stream],
    ) -> None:
        self._queues = queues
        self._streams = streams

    async def check_queue(self, name: QueueName, spec: QueueSpec) -> None:
        """Raise ValidationFailed for a specification that another queue or stream prevents."""
        await self._check_target(name, spec)
        await self._check_view(name, spec)

    async def _check_target(self, name: QueueName, spec: QueueSpec) -> None:
        """Raise ValidationFailed for a target that cannot or may not take the dead letters."""
        if spec.dead_letters is None:
            return
        target = spec.dead_letters.resolve(name.namespace)
        if isinstance(target, TopicName):
            await self._check_topic(target, spec)
            return
        try:
            definition = await self._queues.fresh(target)
        except QueueNotFound:
            definition = None
        if target == name:
            detail = "A queue cannot be its own dead-letter queue"
        elif definition is None:
            detail = f"Queue '{target.name}' does not exist"
        elif definition.spec.type is not spec.type:
            detail = (
                f"The dead-letter queue must have the same type as this queue, '{spec.type.value}'"
            )
        elif not definition.spec.redrive_allow.allows(name.name):
            detail = f"'{target.name}' does not allow this queue to send dead letters there"
        else:
            return
        code = "not_allowed" if definition else "not_found"
        raise ValidationFailed.at("/dead_letters/queue", detail, code)

    async def _check_topic(self, name: TopicName, spec: QueueSpec) -> None:
        """Raise ValidationFailed for a topic that cannot take the dead letters of a queue."""
        try:
            stream = (await self._streams.fresh(name.stream)).spec
        except StreamNotFound:
            stream = None
        topic = None if stream is None else stream.topic
        if stream is None or topic is None or topic.queue_id:
            detail = f"Topic '{name.name}' does not exist"
        elif topic.is_fifo and spec.type is not QueueType.FIFO:
            detail = "A FIFO topic takes the dead letters of FIFO queues alone"
        elif stream.record_bytes_max < spec.message_bytes_max:
            detail = (
                f"The topic takes at most {stream.record_bytes_max} bytes, less than this queue"
            )
        else:
            return
        raise ValidationFailed.at("/dead_letters/topic", detail, "conflict")

    async def _check_view(self, name: QueueName, spec: QueueSpec) -> None:
        """Raise ValidationFailed for a queue with a stream view whose name is taken."""
        if not spec.stream_view:
            return
        try:
            await self._streams.fresh(StreamName(name.name, name.namespace))
        except StreamNotFound:
            return
        raise ValidationFailed.at("/stream_view", "A stream with this name exists", "conflict")

    async def check_stream(self, name: StreamName, spec: StreamSpec) -> None:
        """Raise StreamReadOnly for a view's name, ValidationFailed for a topic's."""
        if name.is_of_topic or spec.topic is not None:
            check_is_topic(name, spec.topic)
            return
        try:
            queue = await self._queues.fresh(QueueName(name.name, name.namespace))
        except QueueNotFound:
            return
        if queue.spec.stream_view:
            raise StreamReadOnly
