from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.topic_dedup_scope import TopicDedupScope
from ..models.topic_type import TopicType
from ..models.unmatched import Unmatched

if TYPE_CHECKING:
    from ..models.topic_out_tags import TopicOutTags


T = TypeVar("T", bound="TopicOut")


@_attrs_define
class TopicOut:
    """A topic: its configuration, and its version, which is its ETag.

    Attributes:
        name (str):
        stream (str): The stream that readers of its messages name.
        type_ (TopicType): Treatment of repeated messages.

            standard: each publication is a message. fifo: each has a key and a deduplication id, and a repeated id adds
            nothing
            for five minutes.
        shards (int): Number of shards at creation.
        open_shards (int): Now.
        unmatched (Unmatched): Handling of a message that no route takes.
        deduplicate_by_content (bool):
        dedup_scope (TopicDedupScope): Scope in which a deduplication id is unique for its window: the topic, or each
            key.
        message_bytes_max (int):
        retention_seconds (float | None):
        retention_bytes (int | None):
        archive (bool):
        tags (TopicOutTags):
        version (int):
        created_at (datetime.datetime):
        changed_at (datetime.datetime):
    """

    name: str
    stream: str
    type_: TopicType
    shards: int
    open_shards: int
    unmatched: Unmatched
    deduplicate_by_content: bool
    dedup_scope: TopicDedupScope
    message_bytes_max: int
    retention_seconds: float | None
    retention_bytes: int | None
    archive: bool
    tags: TopicOutTags
    version: int
    created_at: datetime.datetime
    changed_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        stream = self.stream

        type_ = self.type_.value

        shards = self.shards

        open_shards = self.open_shards

        unmatched = self.unmatched.value

        deduplicate_by_content = self.deduplicate_by_content

        dedup_scope = self.dedup_scope.value

        message_bytes_max = self.message_bytes_max

        retention_seconds: float | None
        retention_seconds = self.retention_seconds

        retention_bytes: int | None
        retention_bytes = self.retention_bytes

        archive = self.archive

        tags = self.tags.to_dict()

        version = self.version

        created_at = self.created_at.isoformat()

        changed_at = self.changed_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "stream": stream,
                "type": type_,
                "shards": shards,
                "open_shards": open_shards,
                "unmatched": unmatched,
                "deduplicate_by_content": deduplicate_by_content,
                "dedup_scope": dedup_scope,
                "message_bytes_max": message_bytes_max,
                "retention_seconds": retention_seconds,
                "retention_bytes": retention_bytes,
                "archive": archive,
                "tags": tags,
                "version": version,
                "created_at": created_at,
                "changed_at": changed_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.topic_out_tags import TopicOutTags  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        stream = d.pop("stream")

        type_ = TopicType(d.pop("type"))

        shards = d.pop("shards")

        open_shards = d.pop("open_shards")

        unmatched = Unmatched(d.pop("unmatched"))

        deduplicate_by_content = d.pop("deduplicate_by_content")

        dedup_scope = TopicDedupScope(d.pop("dedup_scope"))

        message_bytes_max = d.pop("message_bytes_max")

        def _parse_retention_seconds(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        retention_seconds = _parse_retention_seconds(d.pop("retention_seconds"))

        def _parse_retention_bytes(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        retention_bytes = _parse_retention_bytes(d.pop("retention_bytes"))

        archive = d.pop("archive")

        tags = TopicOutTags.from_dict(d.pop("tags"))

        version = d.pop("version")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        changed_at = datetime.datetime.fromisoformat(d.pop("changed_at"))

        topic_out = cls(
            name=name,
            stream=stream,
            type_=type_,
            shards=shards,
            open_shards=open_shards,
            unmatched=unmatched,
            deduplicate_by_content=deduplicate_by_content,
            dedup_scope=dedup_scope,
            message_bytes_max=message_bytes_max,
            retention_seconds=retention_seconds,
            retention_bytes=retention_bytes,
            archive=archive,
            tags=tags,
            version=version,
            created_at=created_at,
            changed_at=changed_at,
        )

        topic_out.additional_properties = d
        return topic_out

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
