from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.shard_reset_out import ShardResetOut


T = TypeVar("T", bound="ResetOut")


@_attrs_define
class ResetOut:
    """The effect of a reset, or with `dry_run` its preview.

    Attributes:
        dry_run (bool):
        shards (list[ShardResetOut]):
    """

    dry_run: bool
    shards: list[ShardResetOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        dry_run = self.dry_run

        shards = []
        for shards_item_data in self.shards:
            shards_item = shards_item_data.to_dict()
            shards.append(shards_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "dry_run": dry_run,
                "shards": shards,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.shard_reset_out import ShardResetOut  # noqa: PLC0415

        d = dict(src_dict)
        dry_run = d.pop("dry_run")

        shards = []
        _shards = d.pop("shards")
        for shards_item_data in _shards:
            shards_item = ShardResetOut.from_dict(shards_item_data)

            shards.append(shards_item)

        reset_out = cls(
            dry_run=dry_run,
            shards=shards,
        )

        reset_out.additional_properties = d
        return reset_out

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
