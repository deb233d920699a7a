from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.tier import Tier

if TYPE_CHECKING:
    from ..models.gap_out import GapOut
    from ..models.record_out import RecordOut


T = TypeVar("T", bound="GroupRecords")


@_attrs_define
class GroupRecords:
    """Records of the member's shards, by arrival time, and in order within a shard.

    `token` commits them. `tier` is `archive` if any of them came from the archive.

        Attributes:
            records (list[RecordOut]):
            member (str):
            generation (int):
            shards (list[int]):
            token (str):
            behind_seconds (float):
            tier (Tier): Storage tier that records were read from: offsets, values and order are the same.
            gaps (list[GapOut]):
    """

    records: list[RecordOut]
    member: str
    generation: int
    shards: list[int]
    token: str
    behind_seconds: float
    tier: Tier
    gaps: list[GapOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        records = []
        for records_item_data in self.records:
            records_item = records_item_data.to_dict()
            records.append(records_item)

        member = self.member

        generation = self.generation

        shards = self.shards

        token = self.token

        behind_seconds = self.behind_seconds

        tier = self.tier.value

        gaps = []
        for gaps_item_data in self.gaps:
            gaps_item = gaps_item_data.to_dict()
            gaps.append(gaps_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "records": records,
                "member": member,
                "generation": generation,
                "shards": shards,
                "token": token,
                "behind_seconds": behind_seconds,
                "tier": tier,
                "gaps": gaps,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.gap_out import GapOut  # noqa: PLC0415
        from ..models.record_out import RecordOut  # noqa: PLC0415

        d = dict(src_dict)
        records = []
        _records = d.pop("records")
        for records_item_data in _records:
            records_item = RecordOut.from_dict(records_item_data)

            records.append(records_item)

        member = d.pop("member")

        generation = d.pop("generation")

        shards = cast(list[int], d.pop("shards"))

        token = d.pop("token")

        behind_seconds = d.pop("behind_seconds")

        tier = Tier(d.pop("tier"))

        gaps = []
        _gaps = d.pop("gaps")
        for gaps_item_data in _gaps:
            gaps_item = GapOut.from_dict(gaps_item_data)

            gaps.append(gaps_item)

        group_records = cls(
            records=records,
            member=member,
            generation=generation,
            shards=shards,
            token=token,
            behind_seconds=behind_seconds,
            tier=tier,
            gaps=gaps,
        )

        group_records.additional_properties = d
        return group_records

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
