"""Topic schemas: configuration, progress, and published messages."""

from typing import Annotated, Any, Self

import msgspec
from pydantic import Field

from api.native.fields import rfc3339, show_body, show_headers
from api.native.records import content_type_of
from api.rest.definition_changes import PutOutcome
from api.rest.field_map import Mapped, MappedDefinition, MappedDefinitionConfig
from api.rest.schema_base import (
    Bytes,
    Config,
    ListPage,
    Seconds,
    Tags,
    Time,
    in_seconds,
    merged,
    valid,
)
from api.rest.topic_fields import LagMessages, LagSeconds
from storage.domain import limits
from storage.domain.log.record_batch import subject_of
from storage.domain.streams.stream import LogRecord, Stream, StreamSpec
from storage.domain.streams.topic_spec import TopicDedupScope, TopicSpec, TopicType, Unmatched
from storage.domain.topics.message_id import TopicMessageId
from storage.domain.topics.report import TopicStatus
from storage.domain.topics.topic import options_of


class TopicConfig(MappedDefinitionConfig):
    """The complete configuration of a topic; omitted fields take their default."""

    domain = StreamSpec
    renamed = {"message_bytes_max": "record_bytes_max"}

    type: Annotated[
        TopicType,
        Field(
            strict=False,
            description="Immutable. `fifo`: each message has a key and a `dedup_id`, and a repeated id adds nothing for five "
            "minutes.",
        ),
    ] = TopicType.STANDARD
    shards: Annotated[
        int,
        Field(
            ge=1,
            le=limits.SHARDS_MAX,
            description="Initial number of shards. Messages of one shard are delivered in order. Use a reshard of the stream "
            "`topic:<name>` to change it.",
        ),
    ] = 1
    unmatched: Annotated[
        Unmatched | None,
        Field(
            strict=False,
            description="Handling of a message that no route takes. `drop`: it is accepted, and only the topic's log has it. "
            "`refuse`: it is refused with `unroutable`; a message of a queue becomes a dead letter of that queue. null: `refuse` "
            "for the topic of a queue's routes, else `drop`.",
        ),
    ] = None
    deduplicate_by_content: Annotated[
        bool,
        Field(description="A message without `dedup_id` has the SHA-256 of its body. FIFO only."),
    ] = False
    dedup_scope: Annotated[
        TopicDedupScope,
        Field(
            strict=False,
            description="Immutable. Scope in which a `dedup_id` is unique: the topic, which has one shard then, or each key. FIFO "
            "only.",
        ),
    ] = TopicDedupScope.TOPIC
    message_bytes_max: Bytes = limits.RECORD_BYTES_MAX_DEFAULT
    retention_seconds: Annotated[
        Seconds | None,
        Field(
            description="Time that messages stay in the topic's log: for routes that are behind, for readers, and for replays. null "
            "(also in a patch): unlimited."
        ),
    ] = in_seconds(limits.TOPIC_RETENTION_MS_DEFAULT)
    retention_bytes: Annotated[Bytes | None, Field(description="Per shard; null: no limit.")] = None
    archive: Annotated[
        bool, Field(description="Copy messages to Parquet, if the deployment has an archive.")
    ] = False
    tags: Tags = {}

    @classmethod
    def from_domain(cls, value: StreamSpec, **others: Any) -> Self:
        return cls.mapped(value, value.topic or TopicSpec(), **others)

    def to_domain(self) -> StreamSpec:
        return StreamSpec(
            shards=self.shards,
            record_bytes_max=self.message_bytes_max,
            retention_ms=None
            if self.retention_seconds is None
            else round(self.retention_seconds * limits.SECOND_MS),
            retention_bytes=self.retention_bytes,
            archive=self.archive,
            tags=self.tags,
            topic=TopicSpec(
                type=self.type,
                unmatched=self.unmatched,
                deduplicate_by_content=self.deduplicate_by_content,
                dedup_scope=self.dedup_scope,
            ),
        )


class TopicPatch(Config):
    """Changes to a topic (a JSON Merge Patch); null resets a field to its default.

    `retention_seconds` is instead set to none.
    """

    unmatched: Annotated[Unmatched | None, Field(strict=False)] = None
    deduplicate_by_content: bool | None = None
    message_bytes_max: Bytes | None = None
    retention_seconds: Seconds | None = None
    retention_bytes: Bytes | None = None
    archive: bool | None = None
    tags: dict[str, str | None] | None = None

    def apply(self, spec: StreamSpec) -> StreamSpec:
        """Return the specification after the change. Raises RequestValidationError."""
        before = TopicConfig.from_domain(spec).model_dump()
        patch = self.model_dump(exclude_unset=True)
        after = merged(before, patch)
        if "retention_seconds" in patch:
            after["retention_seconds"] = patch["retention_seconds"]
        changed: StreamSpec = valid(TopicConfig, after).to_domain()
        return msgspec.structs.replace(changed, annotations=spec.annotations)


class TopicOut(MappedDefinition):
    """A topic: its configuration, and its version, which is its ETag."""

    renamed = {"message_bytes_max": "record_bytes_max"}

    name: str
    stream: Annotated[str, Field(description="The stream that readers of its messages name.")]
    type: TopicType
    shards: Annotated[int, Field(description="Number of shards at creation.")]
    open_shards: Annotated[int, Field(description="Now.")]
    unmatched: Unmatched
    deduplicate_by_content: bool
    dedup_scope: TopicDedupScope
    message_bytes_max: int
    retention_seconds: Seconds | None
    retention_bytes: int | None
    archive: bool
    tags: dict[str, str]
    version: int
    created_at: Time
    changed_at: Time

    @classmethod
    def from_domain(cls, value: Stream, **others: Any) -> Self:
        topic = value.spec.topic or TopicSpec()
        return cls.mapped(
            value.spec,
            topic,
            value,
            unmatched=Unmatched.REFUSE if topic.refuses_unmatched else Unmatched.DROP,
            name=value.name.topic.name,
            stream=value.name.name,
            open_shards=len(value.open_shards),
            **others,
        )


class TopicStored(PutOutcome, TopicOut):
    """A topic after a PUT, and what the PUT changed."""


class TopicPage(ListPage[TopicOut]):
    """Topics by name. `next_cursor` is null on the last page."""


class TopicStats(Mapped):
    """Messages that a topic keeps, and how many its routers have not examined yet."""

    messages: Annotated[int, Field(description="In the topic's log.")]
    bytes_held: Annotated[int, Field(description="In the hot store.")]
    routes: int
    lag_messages: LagMessages
    lag_seconds: LagSeconds

    renamed = {"bytes_held": "size_bytes"}

    @classmethod
    def of(cls, status: TopicStatus) -> Self:
        """Return the counts of a topic."""
        return cls.from_domain(status)


# One message


class TopicMessageOut(Mapped):
    """A message of a topic."""

    id: str
    shard: int
    offset: int
    subject: str
    key: str
    headers: dict[str, str]
    headers_base64: dict[str, str]
    content_type: str
    dedup_id: Annotated[str, Field(description="Empty on a standard topic.")]
    delay_seconds: Annotated[
        Seconds | None, Field(description="null: that of the route, or of the queue.")
    ]
    ttl_seconds: Annotated[Seconds, Field(description="0: that of the route, or of the queue.")]
    priority: int
    body: Annotated[Any, Field(description="Text, or JSON; null if it is neither.")]
    body_base64: Annotated[str | None, Field(description="The body, if it is neither.")]
    published_at: Time

    @classmethod
    def of(cls, message_id: TopicMessageId, message: LogRecord) -> Self:
        """Return a message of the topic's log."""
        record = message.record
        content_type = content_type_of(record.headers)
        body, encoded = show_body(record.data, content_type)
        texts, others = show_headers(record.headers)
        options = options_of(record.headers)
        return cls(
            id=str(message_id),
            shard=message_id.shard,
            offset=message_id.offset,
            subject=subject_of(record.headers),
            key=record.key,
            headers=texts,
            headers_base64=others,
            content_type=content_type,
            dedup_id=options.dedup_id,
            delay_seconds=None if options.delay_ms is None else in_seconds(options.delay_ms),
            ttl_seconds=in_seconds(options.ttl_ms),
            priority=options.priority,
            body=_plain(body),
            body_base64=None if encoded is msgspec.UNSET else encoded,
            published_at=rfc3339(message.arrival_ms),
        )


def _plain(body: Any) -> Any:
    if body is msgspec.UNSET:
        return None
    return msgspec.json.decode(body) if isinstance(body, msgspec.Raw) else body
