from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="AssignedShard")


@_attrs_define
class AssignedShard:
    """An assigned shard, its committed offset and the next offset to read.

    `committed` is null before the first commit; `position` is null if it could not be determined yet.

        Attributes:
            shard (int):
            committed (int | None):
            position (int | None):
    """

    shard: int
    committed: int | None
    position: int | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        shard = self.shard

        committed: int | None
        committed = self.committed

        position: int | None
        position = self.position

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "shard": shard,
                "committed": committed,
                "position": position,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        shard = d.pop("shard")

        def _parse_committed(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        committed = _parse_committed(d.pop("committed"))

        def _parse_position(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        position = _parse_position(d.pop("position"))

        assigned_shard = cls(
            shard=shard,
            committed=committed,
            position=position,
        )

        assigned_shard.additional_properties = d
        return assigned_shard

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
