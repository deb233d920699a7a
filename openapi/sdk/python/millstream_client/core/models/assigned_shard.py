from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="AssignedShard")


@_attrs_define
class AssignedShard:
    """An assigned shard and its next offset.

    `committed` is null if nothing is committed: read from the group's start position.

        Attributes:
            shard (int):
            committed (int | None):
    """

    shard: int
    committed: int | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        shard = self.shard

        committed: int | None
        committed = self.committed

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "shard": shard,
                "committed": committed,
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

        assigned_shard = cls(
            shard=shard,
            committed=committed,
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
