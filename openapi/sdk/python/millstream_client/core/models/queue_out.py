from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.dedup_scope import DedupScope
from ..models.overflow import Overflow
from ..models.poison_policy import PoisonPolicy
from ..models.queue_type import QueueType

if TYPE_CHECKING:
    from ..models.backoff_out import BackoffOut
    from ..models.dead_letters_config import DeadLettersConfig
    from ..models.group_weight_config import GroupWeightConfig
    from ..models.queue_out_tags import QueueOutTags
    from ..models.redrive_allow_config import RedriveAllowConfig


T = TypeVar("T", bound="QueueOut")


@_attrs_define
class QueueOut:
    """A queue: its configuration, and its version, which is its ETag.

    Attributes:
        name (str):
        type_ (QueueType): Delivery order of a queue.

            standard: any order, no limit. fifo: in order within a group, one message of a group at a time.
        partitions (int):
        visibility_timeout_seconds (float):
        delay_seconds (float):
        ttl_seconds (float | None):
        retention_seconds (float):
        dead_letter_retention_seconds (float):
        message_bytes_max (int):
        attempts_max (int | None):
        receive_wait_seconds (float):
        in_flight_max (int):
        deduplicate_by_content (bool):
        dedup_scope (DedupScope): Scope in which a deduplication id is unique for its window: the queue, or each group.
        dead_letters (DeadLettersConfig | None):
        redrive_allow (RedriveAllowConfig): Queues that may use this one as their dead-letter queue.

            `sources` applies to `by_queue`.
        backoff (BackoffOut | None):
        paused (bool): Accepts messages but delivers none.
        messages_max (int | None):
        bytes_max (int | None):
        overflow (Overflow): Handling of a send that would exceed the queue's cap.

            reject: the send is refused. drop_oldest: the oldest messages that are not in flight are dropped.
            dead_letter: they become dead letters of the queue.
        on_poison (PoisonPolicy): Handling of a FIFO group when one of its messages has failed `attempts_max` times.

            skip: the message is dead-lettered, and the group continues. block: the message is retried
            indefinitely, and its group waits for it. park_group: it waits with its whole group, including new
            messages, until the group is resumed.
        group_weights (list[GroupWeightConfig]):
        stream_view (bool):
        archive (bool):
        history (bool):
        expires_after_idle_seconds (float | None):
        tags (QueueOutTags):
        version (int):
        created_at (datetime.datetime):
        changed_at (datetime.datetime):
    """

    name: str
    type_: QueueType
    partitions: int
    visibility_timeout_seconds: float
    delay_seconds: float
    ttl_seconds: float | None
    retention_seconds: float
    dead_letter_retention_seconds: float
    message_bytes_max: int
    attempts_max: int | None
    receive_wait_seconds: float
    in_flight_max: int
    deduplicate_by_content: bool
    dedup_scope: DedupScope
    dead_letters: DeadLettersConfig | None
    redrive_allow: RedriveAllowConfig
    backoff: BackoffOut | None
    paused: bool
    messages_max: int | None
    bytes_max: int | None
    overflow: Overflow
    on_poison: PoisonPolicy
    group_weights: list[GroupWeightConfig]
    stream_view: bool
    archive: bool
    history: bool
    expires_after_idle_seconds: float | None
    tags: QueueOutTags
    version: int
    created_at: datetime.datetime
    changed_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.backoff_out import BackoffOut  # noqa: PLC0415
        from ..models.dead_letters_config import DeadLettersConfig  # noqa: PLC0415

        name = self.name

        type_ = self.type_.value

        partitions = self.partitions

        visibility_timeout_seconds = self.visibility_timeout_seconds

        delay_seconds = self.delay_seconds

        ttl_seconds: float | None
        ttl_seconds = self.ttl_seconds

        retention_seconds = self.retention_seconds

        dead_letter_retention_seconds = self.dead_letter_retention_seconds

        message_bytes_max = self.message_bytes_max

        attempts_max: int | None
        attempts_max = self.attempts_max

        receive_wait_seconds = self.receive_wait_seconds

        in_flight_max = self.in_flight_max

        deduplicate_by_content = self.deduplicate_by_content

        dedup_scope = self.dedup_scope.value

        dead_letters: dict[str, Any] | None
        if isinstance(self.dead_letters, DeadLettersConfig):
            dead_letters = self.dead_letters.to_dict()
        else:
            dead_letters = self.dead_letters

        redrive_allow = self.redrive_allow.to_dict()

        backoff: dict[str, Any] | None
        if isinstance(self.backoff, BackoffOut):
            backoff = self.backoff.to_dict()
        else:
            backoff = self.backoff

        paused = self.paused

        messages_max: int | None
        messages_max = self.messages_max

        bytes_max: int | None
        bytes_max = self.bytes_max

        overflow = self.overflow.value

        on_poison = self.on_poison.value

        group_weights = []
        for group_weights_item_data in self.group_weights:
            group_weights_item = group_weights_item_data.to_dict()
            group_weights.append(group_weights_item)

        stream_view = self.stream_view

        archive = self.archive

        history = self.history

        expires_after_idle_seconds: float | None
        expires_after_idle_seconds = self.expires_after_idle_seconds

        tags = self.tags.to_dict()

        version = self.version

        created_at = self.created_at.isoformat()

        changed_at = self.changed_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "type": type_,
                "partitions": partitions,
                "visibility_timeout_seconds": visibility_timeout_seconds,
                "delay_seconds": delay_seconds,
                "ttl_seconds": ttl_seconds,
                "retention_seconds": retention_seconds,
                "dead_letter_retention_seconds": dead_letter_retention_seconds,
                "message_bytes_max": message_bytes_max,
                "attempts_max": attempts_max,
                "receive_wait_seconds": receive_wait_seconds,
                "in_flight_max": in_flight_max,
                "deduplicate_by_content": deduplicate_by_content,
                "dedup_scope": dedup_scope,
                "dead_letters": dead_letters,
                "redrive_allow": redrive_allow,
                "backoff": backoff,
                "paused": paused,
                "messages_max": messages_max,
                "bytes_max": bytes_max,
                "overflow": overflow,
                "on_poison": on_poison,
                "group_weights": group_weights,
                "stream_view": stream_view,
                "archive": archive,
                "history": history,
                "expires_after_idle_seconds": expires_after_idle_seconds,
                "tags": tags,
                "version": version,
                "created_at": created_at,
                "changed_at": changed_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.backoff_out import BackoffOut  # noqa: PLC0415
        from ..models.dead_letters_config import DeadLettersConfig  # noqa: PLC0415
        from ..models.group_weight_config import GroupWeightConfig  # noqa: PLC0415
        from ..models.queue_out_tags import QueueOutTags  # noqa: PLC0415
        from ..models.redrive_allow_config import RedriveAllowConfig  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        type_ = QueueType(d.pop("type"))

        partitions = d.pop("partitions")

        visibility_timeout_seconds = d.pop("visibility_timeout_seconds")

        delay_seconds = d.pop("delay_seconds")

        def _parse_ttl_seconds(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        ttl_seconds = _parse_ttl_seconds(d.pop("ttl_seconds"))

        retention_seconds = d.pop("retention_seconds")

        dead_letter_retention_seconds = d.pop("dead_letter_retention_seconds")

        message_bytes_max = d.pop("message_bytes_max")

        def _parse_attempts_max(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        attempts_max = _parse_attempts_max(d.pop("attempts_max"))

        receive_wait_seconds = d.pop("receive_wait_seconds")

        in_flight_max = d.pop("in_flight_max")

        deduplicate_by_content = d.pop("deduplicate_by_content")

        dedup_scope = DedupScope(d.pop("dedup_scope"))

        def _parse_dead_letters(data: object) -> DeadLettersConfig | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                dead_letters_type_0 = DeadLettersConfig.from_dict(data)

                return dead_letters_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(DeadLettersConfig | None, data)

        dead_letters = _parse_dead_letters(d.pop("dead_letters"))

        redrive_allow = RedriveAllowConfig.from_dict(d.pop("redrive_allow"))

        def _parse_backoff(data: object) -> BackoffOut | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                backoff_type_0 = BackoffOut.from_dict(data)

                return backoff_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(BackoffOut | None, data)

        backoff = _parse_backoff(d.pop("backoff"))

        paused = d.pop("paused")

        def _parse_messages_max(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        messages_max = _parse_messages_max(d.pop("messages_max"))

        def _parse_bytes_max(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        bytes_max = _parse_bytes_max(d.pop("bytes_max"))

        overflow = Overflow(d.pop("overflow"))

        on_poison = PoisonPolicy(d.pop("on_poison"))

        group_weights = []
        _group_weights = d.pop("group_weights")
        for group_weights_item_data in _group_weights:
            group_weights_item = GroupWeightConfig.from_dict(group_weights_item_data)

            group_weights.append(group_weights_item)

        stream_view = d.pop("stream_view")

        archive = d.pop("archive")

        history = d.pop("history")

        def _parse_expires_after_idle_seconds(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        expires_after_idle_seconds = _parse_expires_after_idle_seconds(
            d.pop("expires_after_idle_seconds")
        )

        tags = QueueOutTags.from_dict(d.pop("tags"))

        version = d.pop("version")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        changed_at = datetime.datetime.fromisoformat(d.pop("changed_at"))

        queue_out = cls(
            name=name,
            type_=type_,
            partitions=partitions,
            visibility_timeout_seconds=visibility_timeout_seconds,
            delay_seconds=delay_seconds,
            ttl_seconds=ttl_seconds,
            retention_seconds=retention_seconds,
            dead_letter_retention_seconds=dead_letter_retention_seconds,
            message_bytes_max=message_bytes_max,
            attempts_max=attempts_max,
            receive_wait_seconds=receive_wait_seconds,
            in_flight_max=in_flight_max,
            deduplicate_by_content=deduplicate_by_content,
            dedup_scope=dedup_scope,
            dead_letters=dead_letters,
            redrive_allow=redrive_allow,
            backoff=backoff,
            paused=paused,
            messages_max=messages_max,
            bytes_max=bytes_max,
            overflow=overflow,
            on_poison=on_poison,
            group_weights=group_weights,
            stream_view=stream_view,
            archive=archive,
            history=history,
            expires_after_idle_seconds=expires_after_idle_seconds,
            tags=tags,
            version=version,
            created_at=created_at,
            changed_at=changed_at,
        )

        queue_out.additional_properties = d
        return queue_out

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
