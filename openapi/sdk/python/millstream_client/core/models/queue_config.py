from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.dedup_scope import DedupScope
from ..models.overflow import Overflow
from ..models.poison_policy import PoisonPolicy
from ..models.queue_type import QueueType
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.backoff_config import BackoffConfig
    from ..models.dead_letters_config import DeadLettersConfig
    from ..models.group_weight_config import GroupWeightConfig
    from ..models.queue_config_tags import QueueConfigTags
    from ..models.redrive_allow_config import RedriveAllowConfig


T = TypeVar("T", bound="QueueConfig")


@_attrs_define
class QueueConfig:
    """The complete configuration of a queue; omitted fields take their default.

    Attributes:
        type_ (QueueType | Unset): Delivery order of a queue.

            standard: any order, no limit. fifo: in order within a group, one message of a group at a time.
        partitions (int | None | Unset): Number of logs that share the queue's messages; more than one uses several
            cores or stores. null: as many as it has, 1 for a new queue. Immutable for a FIFO queue.
        visibility_timeout_seconds (float | Unset):  Default: 30.0.
        delay_seconds (float | Unset):  Default: 0.0.
        ttl_seconds (float | None | Unset): Time to live of a message; null: the retention.
        retention_seconds (float | Unset):  Default: 345600.0.
        dead_letter_retention_seconds (float | Unset):  Default: 1209600.0.
        message_bytes_max (int | Unset):  Default: 1048576.
        attempts_max (int | None | Unset): null: no limit. Default: 10.
        receive_wait_seconds (float | Unset): Default wait time of receives that specify none. Default: 0.0.
        in_flight_max (int | Unset):  Default: 10000000.
        deduplicate_by_content (bool | Unset):  Default: False.
        dedup_scope (DedupScope | Unset): Scope in which a deduplication id is unique for its window: the queue, or each
            group.
        dead_letters (DeadLettersConfig | None | Unset):
        redrive_allow (RedriveAllowConfig | Unset): Queues that may use this one as their dead-letter queue.

            `sources` applies to `by_queue`.
        backoff (BackoffConfig | None | Unset):
        paused (bool | None | Unset): Replaced by `PUT` and `DELETE …/pause`.
        messages_max (int | None | Unset): Maximum number of messages; null: unlimited.
        bytes_max (int | None | Unset): Maximum size, counted as `bytes_held`.
        overflow (Overflow | Unset): Handling of a send that would exceed the queue's cap.

            reject: the send is refused. drop_oldest: the oldest messages that are not in flight are dropped.
            dead_letter: they become dead letters of the queue.
        on_poison (PoisonPolicy | Unset): Handling of a FIFO group when one of its messages has failed `attempts_max`
            times.

            skip: the message is dead-lettered, and the group continues. block: the message is retried
            indefinitely, and its group waits for it. park_group: it waits with its whole group, including new
            messages, until the group is resumed.
        group_weights (list[GroupWeightConfig] | Unset):
        stream_view (bool | Unset): Sent messages can also be read as a stream with the queue's name. Default: False.
        archive (bool | Unset): Archive the stream view to Parquet, if the deployment has an archive. Default: False.
        history (bool | Unset): Record each state change of a message, for a limited time. Default: False.
        expires_after_idle_seconds (float | None | Unset): Delete the queue with its messages when it had no sends,
            receives and waiting receivers for this time; null: never. At least 60.
        tags (QueueConfigTags | Unset): Up to 50 user-defined tags.
    """

    type_: QueueType | Unset = UNSET
    partitions: int | None | Unset = UNSET
    visibility_timeout_seconds: float | Unset = 30.0
    delay_seconds: float | Unset = 0.0
    ttl_seconds: float | None | Unset = UNSET
    retention_seconds: float | Unset = 345600.0
    dead_letter_retention_seconds: float | Unset = 1209600.0
    message_bytes_max: int | Unset = 1048576
    attempts_max: int | None | Unset = 10
    receive_wait_seconds: float | Unset = 0.0
    in_flight_max: int | Unset = 10000000
    deduplicate_by_content: bool | Unset = False
    dedup_scope: DedupScope | Unset = UNSET
    dead_letters: DeadLettersConfig | None | Unset = UNSET
    redrive_allow: RedriveAllowConfig | Unset = UNSET
    backoff: BackoffConfig | None | Unset = UNSET
    paused: bool | None | Unset = UNSET
    messages_max: int | None | Unset = UNSET
    bytes_max: int | None | Unset = UNSET
    overflow: Overflow | Unset = UNSET
    on_poison: PoisonPolicy | Unset = UNSET
    group_weights: list[GroupWeightConfig] | Unset = UNSET
    stream_view: bool | Unset = False
    archive: bool | Unset = False
    history: bool | Unset = False
    expires_after_idle_seconds: float | None | Unset = UNSET
    tags: QueueConfigTags | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.backoff_config import BackoffConfig  # noqa: PLC0415
        from ..models.dead_letters_config import DeadLettersConfig  # noqa: PLC0415

        type_: str | Unset = UNSET
        if not isinstance(self.type_, Unset):
            type_ = self.type_.value

        partitions: int | None | Unset
        if isinstance(self.partitions, Unset):
            partitions = UNSET
        else:
            partitions = self.partitions

        visibility_timeout_seconds = self.visibility_timeout_seconds

        delay_seconds = self.delay_seconds

        ttl_seconds: float | None | Unset
        if isinstance(self.ttl_seconds, Unset):
            ttl_seconds = UNSET
        else:
            ttl_seconds = self.ttl_seconds

        retention_seconds = self.retention_seconds

        dead_letter_retention_seconds = self.dead_letter_retention_seconds

        message_bytes_max = self.message_bytes_max

        attempts_max: int | None | Unset
        if isinstance(self.attempts_max, Unset):
            attempts_max = UNSET
        else:
            attempts_max = self.attempts_max

        receive_wait_seconds = self.receive_wait_seconds

        in_flight_max = self.in_flight_max

        deduplicate_by_content = self.deduplicate_by_content

        dedup_scope: str | Unset = UNSET
        if not isinstance(self.dedup_scope, Unset):
            dedup_scope = self.dedup_scope.value

        dead_letters: dict[str, Any] | None | Unset
        if isinstance(self.dead_letters, Unset):
            dead_letters = UNSET
        elif isinstance(self.dead_letters, DeadLettersConfig):
            dead_letters = self.dead_letters.to_dict()
        else:
            dead_letters = self.dead_letters

        redrive_allow: dict[str, Any] | Unset = UNSET
        if not isinstance(self.redrive_allow, Unset):
            redrive_allow = self.redrive_allow.to_dict()

        backoff: dict[str, Any] | None | Unset
        if isinstance(self.backoff, Unset):
            backoff = UNSET
        elif isinstance(self.backoff, BackoffConfig):
            backoff = self.backoff.to_dict()
        else:
            backoff = self.backoff

        paused: bool | None | Unset
        if isinstance(self.paused, Unset):
            paused = UNSET
        else:
            paused = self.paused

        messages_max: int | None | Unset
        if isinstance(self.messages_max, Unset):
            messages_max = UNSET
        else:
            messages_max = self.messages_max

        bytes_max: int | None | Unset
        if isinstance(self.bytes_max, Unset):
            bytes_max = UNSET
        else:
            bytes_max = self.bytes_max

        overflow: str | Unset = UNSET
        if not isinstance(self.overflow, Unset):
            overflow = self.overflow.value

        on_poison: str | Unset = UNSET
        if not isinstance(self.on_poison, Unset):
            on_poison = self.on_poison.value

        group_weights: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.group_weights, Unset):
            group_weights = []
            for group_weights_item_data in self.group_weights:
                group_weights_item = group_weights_item_data.to_dict()
                group_weights.append(group_weights_item)

        stream_view = self.stream_view

        archive = self.archive

        history = self.history

        expires_after_idle_seconds: float | None | Unset
        if isinstance(self.expires_after_idle_seconds, Unset):
            expires_after_idle_seconds = UNSET
        else:
            expires_after_idle_seconds = self.expires_after_idle_seconds

        tags: dict[str, Any] | Unset = UNSET
        if not isinstance(self.tags, Unset):
            tags = self.tags.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if type_ is not UNSET:
            field_dict["type"] = type_
        if partitions is not UNSET:
            field_dict["partitions"] = partitions
        if visibility_timeout_seconds is not UNSET:
            field_dict["visibility_timeout_seconds"] = visibility_timeout_seconds
        if delay_seconds is not UNSET:
            field_dict["delay_seconds"] = delay_seconds
        if ttl_seconds is not UNSET:
            field_dict["ttl_seconds"] = ttl_seconds
        if retention_seconds is not UNSET:
            field_dict["retention_seconds"] = retention_seconds
        if dead_letter_retention_seconds is not UNSET:
            field_dict["dead_letter_retention_seconds"] = dead_letter_retention_seconds
        if message_bytes_max is not UNSET:
            field_dict["message_bytes_max"] = message_bytes_max
        if attempts_max is not UNSET:
            field_dict["attempts_max"] = attempts_max
        if receive_wait_seconds is not UNSET:
            field_dict["receive_wait_seconds"] = receive_wait_seconds
        if in_flight_max is not UNSET:
            field_dict["in_flight_max"] = in_flight_max
        if deduplicate_by_content is not UNSET:
            field_dict["deduplicate_by_content"] = deduplicate_by_content
        if dedup_scope is not UNSET:
            field_dict["dedup_scope"] = dedup_scope
        if dead_letters is not UNSET:
            field_dict["dead_letters"] = dead_letters
        if redrive_allow is not UNSET:
            field_dict["redrive_allow"] = redrive_allow
        if backoff is not UNSET:
            field_dict["backoff"] = backoff
        if paused is not UNSET:
            field_dict["paused"] = paused
        if messages_max is not UNSET:
            field_dict["messages_max"] = messages_max
        if bytes_max is not UNSET:
            field_dict["bytes_max"] = bytes_max
        if overflow is not UNSET:
            field_dict["overflow"] = overflow
        if on_poison is not UNSET:
            field_dict["on_poison"] = on_poison
        if group_weights is not UNSET:
            field_dict["group_weights"] = group_weights
        if stream_view is not UNSET:
            field_dict["stream_view"] = stream_view
        if archive is not UNSET:
            field_dict["archive"] = archive
        if history is not UNSET:
            field_dict["history"] = history
        if expires_after_idle_seconds is not UNSET:
            field_dict["expires_after_idle_seconds"] = expires_after_idle_seconds
        if tags is not UNSET:
            field_dict["tags"] = tags

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.backoff_config import BackoffConfig  # noqa: PLC0415
        from ..models.dead_letters_config import DeadLettersConfig  # noqa: PLC0415
        from ..models.group_weight_config import GroupWeightConfig  # noqa: PLC0415
        from ..models.queue_config_tags import QueueConfigTags  # noqa: PLC0415
        from ..models.redrive_allow_config import RedriveAllowConfig  # noqa: PLC0415

        d = dict(src_dict)
        _type_ = d.pop("type", UNSET)
        type_: QueueType | Unset
        if isinstance(_type_, Unset):
            type_ = UNSET
        else:
            type_ = QueueType(_type_)

        def _parse_partitions(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        partitions = _parse_partitions(d.pop("partitions", UNSET))

        visibility_timeout_seconds = d.pop("visibility_timeout_seconds", UNSET)

        delay_seconds = d.pop("delay_seconds", UNSET)

        def _parse_ttl_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        ttl_seconds = _parse_ttl_seconds(d.pop("ttl_seconds", UNSET))

        retention_seconds = d.pop("retention_seconds", UNSET)

        dead_letter_retention_seconds = d.pop("dead_letter_retention_seconds", UNSET)

        message_bytes_max = d.pop("message_bytes_max", UNSET)

        def _parse_attempts_max(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        attempts_max = _parse_attempts_max(d.pop("attempts_max", UNSET))

        receive_wait_seconds = d.pop("receive_wait_seconds", UNSET)

        in_flight_max = d.pop("in_flight_max", UNSET)

        deduplicate_by_content = d.pop("deduplicate_by_content", UNSET)

        _dedup_scope = d.pop("dedup_scope", UNSET)
        dedup_scope: DedupScope | Unset
        if isinstance(_dedup_scope, Unset):
            dedup_scope = UNSET
        else:
            dedup_scope = DedupScope(_dedup_scope)

        def _parse_dead_letters(data: object) -> DeadLettersConfig | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                dead_letters_type_0 = DeadLettersConfig.from_dict(data)

                return dead_letters_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(DeadLettersConfig | None | Unset, data)

        dead_letters = _parse_dead_letters(d.pop("dead_letters", UNSET))

        _redrive_allow = d.pop("redrive_allow", UNSET)
        redrive_allow: RedriveAllowConfig | Unset
        if isinstance(_redrive_allow, Unset):
            redrive_allow = UNSET
        else:
            redrive_allow = RedriveAllowConfig.from_dict(_redrive_allow)

        def _parse_backoff(data: object) -> BackoffConfig | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                backoff_type_0 = BackoffConfig.from_dict(data)

                return backoff_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(BackoffConfig | None | Unset, data)

        backoff = _parse_backoff(d.pop("backoff", UNSET))

        def _parse_paused(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        paused = _parse_paused(d.pop("paused", UNSET))

        def _parse_messages_max(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        messages_max = _parse_messages_max(d.pop("messages_max", UNSET))

        def _parse_bytes_max(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        bytes_max = _parse_bytes_max(d.pop("bytes_max", UNSET))

        _overflow = d.pop("overflow", UNSET)
        overflow: Overflow | Unset
        if isinstance(_overflow, Unset):
            overflow = UNSET
        else:
            overflow = Overflow(_overflow)

        _on_poison = d.pop("on_poison", UNSET)
        on_poison: PoisonPolicy | Unset
        if isinstance(_on_poison, Unset):
            on_poison = UNSET
        else:
            on_poison = PoisonPolicy(_on_poison)

        _group_weights = d.pop("group_weights", UNSET)
        group_weights: list[GroupWeightConfig] | Unset = UNSET
        if _group_weights is not UNSET:
            group_weights = []
            for group_weights_item_data in _group_weights:
                group_weights_item = GroupWeightConfig.from_dict(group_weights_item_data)

                group_weights.append(group_weights_item)

        stream_view = d.pop("stream_view", UNSET)

        archive = d.pop("archive", UNSET)

        history = d.pop("history", UNSET)

        def _parse_expires_after_idle_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        expires_after_idle_seconds = _parse_expires_after_idle_seconds(
            d.pop("expires_after_idle_seconds", UNSET)
        )

        _tags = d.pop("tags", UNSET)
        tags: QueueConfigTags | Unset
        if isinstance(_tags, Unset):
            tags = UNSET
        else:
            tags = QueueConfigTags.from_dict(_tags)

        queue_config = cls(
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
        )

        return queue_config
