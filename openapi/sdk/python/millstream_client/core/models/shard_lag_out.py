from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ShardLagOut")


@_attrs_define
class ShardLagOut:
    """Lag of the group in one shard.

    Attributes:
        shard (int):
        member (None | str):
        committed (int | None):
        position (int): Next offset that the group reads.
        start (int):
        tip (int):
        records (int): Number of unread records, not counting holes.
        expired (int): Number of records that expired by retention before they were read.
        lag_seconds (float): Age of the next record to read.
        loss_in_seconds (float | None): Time until that record expires by retention; null if everything is read or
            records do not expire by age.
        finished (bool):
    """

    shard: int
    member: None | str
    committed: int | None
    position: int
    start: int
    tip: int
    records: int
    expired: int
    lag_seconds: float
    loss_in_seconds: float | None
    finished: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        shard = self.shard

        member: None | str
        member = self.member

        committed: int | None
        committed = self.committed

        position = self.position

        start = self.start

        tip = self.tip

        records = self.records

        expired = self.expired

        lag_seconds = self.lag_seconds

        loss_in_seconds: float | None
        loss_in_seconds = self.loss_in_seconds

        finished = self.finished

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "shard": shard,
                "member": member,
                "committed": committed,
                "position": position,
                "start": start,
                "tip": tip,
                "records": records,
                "expired": expired,
                "lag_seconds": lag_seconds,
                "loss_in_seconds": loss_in_seconds,
                "finished": finished,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        shard = d.pop("shard")

        def _parse_member(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        member = _parse_member(d.pop("member"))

        def _parse_committed(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        committed = _parse_committed(d.pop("committed"))

        position = d.pop("position")

        start = d.pop("start")

        tip = d.pop("tip")

        records = d.pop("records")

        expired = d.pop("expired")

        lag_seconds = d.pop("lag_seconds")

        def _parse_loss_in_seconds(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        loss_in_seconds = _parse_loss_in_seconds(d.pop("loss_in_seconds"))

        finished = d.pop("finished")

        shard_lag_out = cls(
            shard=shard,
            member=member,
            committed=committed,
            position=position,
            start=start,
            tip=tip,
            records=records,
            expired=expired,
            lag_seconds=lag_seconds,
            loss_in_seconds=loss_in_seconds,
            finished=finished,
        )

        shard_lag_out.additional_properties = d
        return shard_lag_out

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
