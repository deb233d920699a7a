from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.shard_archive_out import ShardArchiveOut


T = TypeVar("T", bound="ArchiveOut")


@_attrs_define
class ArchiveOut:
    """The archive of a stream.

    `archiving`: archiving is enabled for the stream, and the deployment has an archive.

        Attributes:
            stream (str):
            archiving (bool):
            shards (list[ShardArchiveOut]):
    """

    stream: str
    archiving: bool
    shards: list[ShardArchiveOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        stream = self.stream

        archiving = self.archiving

        shards = []
        for shards_item_data in self.shards:
            shards_item = shards_item_data.to_dict()
            shards.append(shards_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "stream": stream,
                "archiving": archiving,
                "shards": shards,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.shard_archive_out import ShardArchiveOut  # noqa: PLC0415

        d = dict(src_dict)
        stream = d.pop("stream")

        archiving = d.pop("archiving")

        shards = []
        _shards = d.pop("shards")
        for shards_item_data in _shards:
            shards_item = ShardArchiveOut.from_dict(shards_item_data)

            shards.append(shards_item)

        archive_out = cls(
            stream=stream,
            archiving=archiving,
            shards=shards,
        )

        archive_out.additional_properties = d
        return archive_out

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
