from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.topic_dedup_scope import TopicDedupScope
from ..models.topic_type import TopicType
from ..models.unmatched import Unmatched
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.topic_config_tags import TopicConfigTags


T = TypeVar("T", bound="TopicConfig")


@_attrs_define
class TopicConfig:
    """The complete configuration of a topic; omitted fields take their default.

    Attributes:
        type_ (TopicType | Unset): Treatment of repeated messages.

            standard: each publication is a message. fifo: each has a key and a deduplication id, and a repeated id adds
            nothing
            for five minutes.
        shards (int | Unset): Initial number of shards. Messages of one shard are delivered in order. Use a reshard of
            the stream `topic:<name>` to change it. Default: 1.
        unmatched (None | Unmatched | Unset): Handling of a message that no route takes. `drop`: it is accepted, and
            only the topic's log has it. `refuse`: it is refused with `unroutable`; a message of a queue becomes a dead
            letter of that queue. null: `refuse` for the topic of a queue's routes, else `drop`.
        deduplicate_by_content (bool | Unset): A message without `dedup_id` has the SHA-256 of its body. FIFO only.
            Default: False.
        dedup_scope (TopicDedupScope | Unset): Scope in which a deduplication id is unique for its window: the topic, or
            each key.
        message_bytes_max (int | Unset):  Default: 1048576.
        retention_seconds (float | None | Unset): Time that messages stay in the topic's log: for routes that are
            behind, for readers, and for replays. null (also in a patch): unlimited. Default: 345600.0.
        retention_bytes (int | None | Unset): Per shard; null: no limit.
        archive (bool | Unset): Copy messages to Parquet, if the deployment has an archive. Default: False.
        tags (TopicConfigTags | Unset): Up to 50 user-defined tags.
    """

    type_: TopicType | Unset = UNSET
    shards: int | Unset = 1
    unmatched: None | Unmatched | Unset = UNSET
    deduplicate_by_content: bool | Unset = False
    dedup_scope: TopicDedupScope | Unset = UNSET
    message_bytes_max: int | Unset = 1048576
    retention_seconds: float | None | Unset = 345600.0
    retention_bytes: int | None | Unset = UNSET
    archive: bool | Unset = False
    tags: TopicConfigTags | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        type_: str | Unset = UNSET
        if not isinstance(self.type_, Unset):
            type_ = self.type_.value

        shards = self.shards

        unmatched: None | str | Unset
        if isinstance(self.unmatched, Unset):
            unmatched = UNSET
        elif isinstance(self.unmatched, Unmatched):
            unmatched = self.unmatched.value
        else:
            unmatched = self.unmatched

        deduplicate_by_content = self.deduplicate_by_content

        dedup_scope: str | Unset = UNSET
        if not isinstance(self.dedup_scope, Unset):
            dedup_scope = self.dedup_scope.value

        message_bytes_max = self.message_bytes_max

        retention_seconds: float | None | Unset
        if isinstance(self.retention_seconds, Unset):
            retention_seconds = UNSET
        else:
            retention_seconds = self.retention_seconds

        retention_bytes: int | None | Unset
        if isinstance(self.retention_bytes, Unset):
            retention_bytes = UNSET
        else:
            retention_bytes = self.retention_bytes

        archive = self.archive

        tags: dict[str, Any] | Unset = UNSET
        if not isinstance(self.tags, Unset):
            tags = self.tags.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if type_ is not UNSET:
            field_dict["type"] = type_
        if shards is not UNSET:
            field_dict["shards"] = shards
        if unmatched is not UNSET:
            field_dict["unmatched"] = unmatched
        if deduplicate_by_content is not UNSET:
            field_dict["deduplicate_by_content"] = deduplicate_by_content
        if dedup_scope is not UNSET:
            field_dict["dedup_scope"] = dedup_scope
        if message_bytes_max is not UNSET:
            field_dict["message_bytes_max"] = message_bytes_max
        if retention_seconds is not UNSET:
            field_dict["retention_seconds"] = retention_seconds
        if retention_bytes is not UNSET:
            field_dict["retention_bytes"] = retention_bytes
        if archive is not UNSET:
            field_dict["archive"] = archive
        if tags is not UNSET:
            field_dict["tags"] = tags

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.topic_config_tags import TopicConfigTags  # noqa: PLC0415

        d = dict(src_dict)
        _type_ = d.pop("type", UNSET)
        type_: TopicType | Unset
        if isinstance(_type_, Unset):
            type_ = UNSET
        else:
            type_ = TopicType(_type_)

        shards = d.pop("shards", UNSET)

        def _parse_unmatched(data: object) -> None | Unmatched | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                unmatched_type_0 = Unmatched(data)

                return unmatched_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unmatched | Unset, data)

        unmatched = _parse_unmatched(d.pop("unmatched", UNSET))

        deduplicate_by_content = d.pop("deduplicate_by_content", UNSET)

        _dedup_scope = d.pop("dedup_scope", UNSET)
        dedup_scope: TopicDedupScope | Unset
        if isinstance(_dedup_scope, Unset):
            dedup_scope = UNSET
        else:
            dedup_scope = TopicDedupScope(_dedup_scope)

        message_bytes_max = d.pop("message_bytes_max", UNSET)

        def _parse_retention_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        retention_seconds = _parse_retention_seconds(d.pop("retention_seconds", UNSET))

        def _parse_retention_bytes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        retention_bytes = _parse_retention_bytes(d.pop("retention_bytes", UNSET))

        archive = d.pop("archive", UNSET)

        _tags = d.pop("tags", UNSET)
        tags: TopicConfigTags | Unset
        if isinstance(_tags, Unset):
            tags = UNSET
        else:
            tags = TopicConfigTags.from_dict(_tags)

        topic_config = cls(
            type_=type_,
            shards=shards,
            unmatched=unmatched,
            deduplicate_by_content=deduplicate_by_content,
            dedup_scope=dedup_scope,
            message_bytes_max=message_bytes_max,
            retention_seconds=retention_seconds,
            retention_bytes=retention_bytes,
            archive=archive,
            tags=tags,
        )

        return topic_config
