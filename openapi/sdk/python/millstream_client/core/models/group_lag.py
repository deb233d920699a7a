from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.shard_lag_out import ShardLagOut


T = TypeVar("T", bound="GroupLag")


@_attrs_define
class GroupLag:
    """Lag of a group: total records, the oldest of them, and the earliest loss.

    Attributes:
        records (int):
        lag_seconds (float):
        loss_in_seconds (float | None):
        shards (list[ShardLagOut]):
    """

    records: int
    lag_seconds: float
    loss_in_seconds: float | None
    shards: list[ShardLagOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        records = self.records

        lag_seconds = self.lag_seconds

        loss_in_seconds: float | None
        loss_in_seconds = self.loss_in_seconds

        shards = []
        for shards_item_data in self.shards:
            shards_item = shards_item_data.to_dict()
            shards.append(shards_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "records": records,
                "lag_seconds": lag_seconds,
                "loss_in_seconds": loss_in_seconds,
                "shards": shards,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.shard_lag_out import ShardLagOut  # noqa: PLC0415

        d = dict(src_dict)
        records = d.pop("records")

        lag_seconds = d.pop("lag_seconds")

        def _parse_loss_in_seconds(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        loss_in_seconds = _parse_loss_in_seconds(d.pop("loss_in_seconds"))

        shards = []
        _shards = d.pop("shards")
        for shards_item_data in _shards:
            shards_item = ShardLagOut.from_dict(shards_item_data)

            shards.append(shards_item)

        group_lag = cls(
            records=records,
            lag_seconds=lag_seconds,
            loss_in_seconds=loss_in_seconds,
            shards=shards,
        )

        group_lag.additional_properties = d
        return group_lag

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
