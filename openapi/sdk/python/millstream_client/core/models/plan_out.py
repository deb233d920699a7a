from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.estimate_out import EstimateOut
    from ..models.plan_out_sample_item import PlanOutSampleItem
    from ..models.reach_out import ReachOut


T = TypeVar("T", bound="PlanOut")


@_attrs_define
class PlanOut:
    """Preview of a replay.

    Attributes:
        records (EstimateOut): A number, and whether it is exact or estimated from samples.
        bytes_ (EstimateOut): A number, and whether it is exact or estimated from samples.
        expired (int): Number of records of the range that have already expired.
        seconds (float): Minimum duration.
        shards (list[ReachOut]):
        sample (list[PlanOutSampleItem]): Up to 20 records that would be sent.
    """

    records: EstimateOut
    bytes_: EstimateOut
    expired: int
    seconds: float
    shards: list[ReachOut]
    sample: list[PlanOutSampleItem]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        records = self.records.to_dict()

        bytes_ = self.bytes_.to_dict()

        expired = self.expired

        seconds = self.seconds

        shards = []
        for shards_item_data in self.shards:
            shards_item = shards_item_data.to_dict()
            shards.append(shards_item)

        sample = []
        for sample_item_data in self.sample:
            sample_item = sample_item_data.to_dict()
            sample.append(sample_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "records": records,
                "bytes": bytes_,
                "expired": expired,
                "seconds": seconds,
                "shards": shards,
                "sample": sample,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.estimate_out import EstimateOut  # noqa: PLC0415
        from ..models.plan_out_sample_item import PlanOutSampleItem  # noqa: PLC0415
        from ..models.reach_out import ReachOut  # noqa: PLC0415

        d = dict(src_dict)
        records = EstimateOut.from_dict(d.pop("records"))

        bytes_ = EstimateOut.from_dict(d.pop("bytes"))

        expired = d.pop("expired")

        seconds = d.pop("seconds")

        shards = []
        _shards = d.pop("shards")
        for shards_item_data in _shards:
            shards_item = ReachOut.from_dict(shards_item_data)

            shards.append(shards_item)

        sample = []
        _sample = d.pop("sample")
        for sample_item_data in _sample:
            sample_item = PlanOutSampleItem.from_dict(sample_item_data)

            sample.append(sample_item)

        plan_out = cls(
            records=records,
            bytes_=bytes_,
            expired=expired,
            seconds=seconds,
            shards=shards,
            sample=sample,
        )

        plan_out.additional_properties = d
        return plan_out

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
