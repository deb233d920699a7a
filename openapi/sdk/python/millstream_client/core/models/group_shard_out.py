from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="GroupShardOut")


@_attrs_define
class GroupShardOut:
    """A shard of the group. `finished`: the shard is closed and fully read.

    Attributes:
        shard (int):
        member (None | str):
        committed (int | None): Null before the first commit.
        finished (bool):
    """

    shard: int
    member: None | str
    committed: int | None
    finished: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        shard = self.shard

        member: None | str
        member = self.member

        committed: int | None
        committed = self.committed

        finished = self.finished

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "shard": shard,
                "member": member,
                "committed": committed,
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

        finished = d.pop("finished")

        group_shard_out = cls(
            shard=shard,
            member=member,
            committed=committed,
            finished=finished,
        )

        group_shard_out.additional_properties = d
        return group_shard_out

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
