from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.tier import Tier
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.child_out import ChildOut
    from ..models.gap_out import GapOut
    from ..models.record_out import RecordOut


T = TypeVar("T", bound="ShardRecords")


@_attrs_define
class ShardRecords:
    """Records of one shard.

    `tip` is the next offset to be written; `gap` describes offsets that cannot be read. `tier` is where the records
    came from,
    which affects only the latency. `ended`: the shard was split or merged, and nothing is left in it; continue with its
    `children`. Send `stream_id` with the next read, so that it fails if another stream has the name by then.

        Attributes:
            records (list[RecordOut]):
            stream_id (str):
            next_offset (int):
            start (int):
            tip (int):
            behind_seconds (float):
            tier (Tier): Storage tier that records were read from: offsets, values and order are the same.
            ended (bool):
            gap (GapOut | Unset): Offsets [first, next) that cannot be read.

                `reason`: 'expired' by retention; 'failover', without a record that was acknowledged; or a 'hole', whose
                records, if there
                were any, are lost.
            children (list[ChildOut] | Unset):
    """

    records: list[RecordOut]
    stream_id: str
    next_offset: int
    start: int
    tip: int
    behind_seconds: float
    tier: Tier
    ended: bool
    gap: GapOut | Unset = UNSET
    children: list[ChildOut] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        records = []
        for records_item_data in self.records:
            records_item = records_item_data.to_dict()
            records.append(records_item)

        stream_id = self.stream_id

        next_offset = self.next_offset

        start = self.start

        tip = self.tip

        behind_seconds = self.behind_seconds

        tier = self.tier.value

        ended = self.ended

        gap: dict[str, Any] | Unset = UNSET
        if not isinstance(self.gap, Unset):
            gap = self.gap.to_dict()

        children: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.children, Unset):
            children = []
            for children_item_data in self.children:
                children_item = children_item_data.to_dict()
                children.append(children_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "records": records,
                "stream_id": stream_id,
                "next_offset": next_offset,
                "start": start,
                "tip": tip,
                "behind_seconds": behind_seconds,
                "tier": tier,
                "ended": ended,
            }
        )
        if gap is not UNSET:
            field_dict["gap"] = gap
        if children is not UNSET:
            field_dict["children"] = children

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.child_out import ChildOut  # noqa: PLC0415
        from ..models.gap_out import GapOut  # noqa: PLC0415
        from ..models.record_out import RecordOut  # noqa: PLC0415

        d = dict(src_dict)
        records = []
        _records = d.pop("records")
        for records_item_data in _records:
            records_item = RecordOut.from_dict(records_item_data)

            records.append(records_item)

        stream_id = d.pop("stream_id")

        next_offset = d.pop("next_offset")

        start = d.pop("start")

        tip = d.pop("tip")

        behind_seconds = d.pop("behind_seconds")

        tier = Tier(d.pop("tier"))

        ended = d.pop("ended")

        _gap = d.pop("gap", UNSET)
        gap: GapOut | Unset
        if isinstance(_gap, Unset):
            gap = UNSET
        else:
            gap = GapOut.from_dict(_gap)

        _children = d.pop("children", UNSET)
        children: list[ChildOut] | Unset = UNSET
        if _children is not UNSET:
            children = []
            for children_item_data in _children:
                children_item = ChildOut.from_dict(children_item_data)

                children.append(children_item)

        shard_records = cls(
            records=records,
            stream_id=stream_id,
            next_offset=next_offset,
            start=start,
            tip=tip,
            behind_seconds=behind_seconds,
            tier=tier,
            ended=ended,
            gap=gap,
            children=children,
        )

        shard_records.additional_properties = d
        return shard_records

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
