from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="MemberOut")


@_attrs_define
class MemberOut:
    """A member. `disconnected`: it left and keeps its shards. `revoked`: shards to release.

    Attributes:
        member (str):
        static (bool):
        disconnected (bool):
        joined_at (datetime.datetime):
        heartbeat_at (datetime.datetime):
        assigned (list[int]):
        revoked (list[int]):
        away (bool | Unset): Former name of `disconnected`, which replaces it.
    """

    member: str
    static: bool
    disconnected: bool
    joined_at: datetime.datetime
    heartbeat_at: datetime.datetime
    assigned: list[int]
    revoked: list[int]
    away: bool | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        member = self.member

        static = self.static

        disconnected = self.disconnected

        joined_at = self.joined_at.isoformat()

        heartbeat_at = self.heartbeat_at.isoformat()

        assigned = self.assigned

        revoked = self.revoked

        away = self.away

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "member": member,
                "static": static,
                "disconnected": disconnected,
                "joined_at": joined_at,
                "heartbeat_at": heartbeat_at,
                "assigned": assigned,
                "revoked": revoked,
            }
        )
        if away is not UNSET:
            field_dict["away"] = away

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        member = d.pop("member")

        static = d.pop("static")

        disconnected = d.pop("disconnected")

        joined_at = datetime.datetime.fromisoformat(d.pop("joined_at"))

        heartbeat_at = datetime.datetime.fromisoformat(d.pop("heartbeat_at"))

        assigned = cast(list[int], d.pop("assigned"))

        revoked = cast(list[int], d.pop("revoked"))

        away = d.pop("away", UNSET)

        member_out = cls(
            member=member,
            static=static,
            disconnected=disconnected,
            joined_at=joined_at,
            heartbeat_at=heartbeat_at,
            assigned=assigned,
            revoked=revoked,
            away=away,
        )

        member_out.additional_properties = d
        return member_out

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
