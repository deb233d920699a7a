from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ShardResetOut")


@_attrs_define
class ShardResetOut:
    """The effect of a reset on a shard.

    `expired`: records after the new offset that have already expired.

        Attributes:
            shard (int):
            before (int | None):
            after (int):
            expired (int):
    """

    shard: int
    before: int | None
    after: int
    expired: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        shard = self.shard

        before: int | None
        before = self.before

        after = self.after

        expired = self.expired

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "shard": shard,
                "before": before,
                "after": after,
                "expired": expired,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        shard = d.pop("shard")

        def _parse_before(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        before = _parse_before(d.pop("before"))

        after = d.pop("after")

        expired = d.pop("expired")

        shard_reset_out = cls(
            shard=shard,
            before=before,
            after=after,
            expired=expired,
        )

        shard_reset_out.additional_properties = d
        return shard_reset_out

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
