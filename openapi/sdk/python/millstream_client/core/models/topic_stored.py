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
    from ..models.field_change import FieldChange
    from ..models.topic_stored_tags import TopicStoredTags


T = TypeVar("T", bound="TopicStored")


@_attrs_define
class TopicStored:
    """A topic after a PUT, and what the PUT changed.

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
        tags (TopicStoredTags):
        version (int):
        created_at (datetime.datetime):
        changed_at (datetime.datetime):
        created (bool): False if the object existed.
        dry_run (bool): True if nothing was stored.
        changes (list[FieldChange]): Fields that differ from those before.
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
    tags: TopicStoredTags
    version: int
    created_at: datetime.datetime
    changed_at: datetime.datetime
    created: bool
    dry_run: bool
    changes: list[FieldChange]
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

        created = self.created

        dry_run = self.dry_run

        changes = []
        for changes_item_data in self.changes:
            changes_item = changes_item_data.to_dict()
            changes.append(changes_item)

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
                "created": created,
                "dry_run": dry_run,
                "changes": changes,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.field_change import FieldChange  # noqa: PLC0415
        from ..models.topic_stored_tags import TopicStoredTags  # noqa: PLC0415

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

        tags = TopicStoredTags.from_dict(d.pop("tags"))

        version = d.pop("version")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        changed_at = datetime.datetime.fromisoformat(d.pop("changed_at"))

        created = d.pop("created")

        dry_run = d.pop("dry_run")

        changes = []
        _changes = d.pop("changes")
        for changes_item_data in _changes:
            changes_item = FieldChange.from_dict(changes_item_data)

            changes.append(changes_item)

        topic_stored = cls(
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
            created=created,
            dry_run=dry_run,
            changes=changes,
        )

        topic_stored.additional_properties = d
        return topic_stored

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
