from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.spread_member_config import SpreadMemberConfig


T = TypeVar("T", bound="MemberStats")


@_attrs_define
class MemberStats:
    """Lag of a member of a spread, as of the last second.

    Attributes:
        member (SpreadMemberConfig): Queue, stream or topic that receives a share of the messages. Exactly one is given.
        lag_messages (int): Messages that routers have not examined yet, whether routes take them.
        lag_seconds (float): Age of the oldest of these messages.
    """

    member: SpreadMemberConfig
    lag_messages: int
    lag_seconds: float
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        member = self.member.to_dict()

        lag_messages = self.lag_messages

        lag_seconds = self.lag_seconds

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "member": member,
                "lag_messages": lag_messages,
                "lag_seconds": lag_seconds,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.spread_member_config import SpreadMemberConfig  # noqa: PLC0415

        d = dict(src_dict)
        member = SpreadMemberConfig.from_dict(d.pop("member"))

        lag_messages = d.pop("lag_messages")

        lag_seconds = d.pop("lag_seconds")

        member_stats = cls(
            member=member,
            lag_messages=lag_messages,
            lag_seconds=lag_seconds,
        )

        member_stats.additional_properties = d
        return member_stats

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
