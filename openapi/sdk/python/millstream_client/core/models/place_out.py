from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="PlaceOut")


@_attrs_define
class PlaceOut:
    """A shard assigned to a member, and the group's next offset in it.

    Attributes:
        shard (int):
        committed (int | None): Null before the first commit.
        position (int | None): Next offset to read; null if it could not be determined yet.
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

        place_out = cls(
            shard=shard,
            committed=committed,
            position=position,
        )

        place_out.additional_properties = d
        return place_out

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
