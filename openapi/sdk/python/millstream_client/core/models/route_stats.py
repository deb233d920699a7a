from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.route_state import RouteState
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.member_stats import MemberStats


T = TypeVar("T", bound="RouteStats")


@_attrs_define
class RouteStats:
    """Counts of a route, as of the last second, and how far it is behind.

    Attributes:
        state (RouteState): State of a route.
        delivered (int): Messages that the target has.
        dropped (int): Messages that the route did not get.
        dead_lettered (int): Messages in the dead-letter queue instead.
        shadowed (int): Messages that were counted as a shadow.
        lag_messages (int): Messages that routers have not examined yet, whether routes take them.
        lag_seconds (float): Age of the oldest of these messages.
        last_failure (str): Why the last delivery failed; empty after a success. Of a spread, a failure of a member,
            until that member succeeds.
        members (list[MemberStats] | Unset): Those of a spread.
    """

    state: RouteState
    delivered: int
    dropped: int
    dead_lettered: int
    shadowed: int
    lag_messages: int
    lag_seconds: float
    last_failure: str
    members: list[MemberStats] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        state = self.state.value

        delivered = self.delivered

        dropped = self.dropped

        dead_lettered = self.dead_lettered

        shadowed = self.shadowed

        lag_messages = self.lag_messages

        lag_seconds = self.lag_seconds

        last_failure = self.last_failure

        members: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.members, Unset):
            members = []
            for members_item_data in self.members:
                members_item = members_item_data.to_dict()
                members.append(members_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "state": state,
                "delivered": delivered,
                "dropped": dropped,
                "dead_lettered": dead_lettered,
                "shadowed": shadowed,
                "lag_messages": lag_messages,
                "lag_seconds": lag_seconds,
                "last_failure": last_failure,
            }
        )
        if members is not UNSET:
            field_dict["members"] = members

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.member_stats import MemberStats  # noqa: PLC0415

        d = dict(src_dict)
        state = RouteState(d.pop("state"))

        delivered = d.pop("delivered")

        dropped = d.pop("dropped")

        dead_lettered = d.pop("dead_lettered")

        shadowed = d.pop("shadowed")

        lag_messages = d.pop("lag_messages")

        lag_seconds = d.pop("lag_seconds")

        last_failure = d.pop("last_failure")

        _members = d.pop("members", UNSET)
        members: list[MemberStats] | Unset = UNSET
        if _members is not UNSET:
            members = []
            for members_item_data in _members:
                members_item = MemberStats.from_dict(members_item_data)

                members.append(members_item)

        route_stats = cls(
            state=state,
            delivered=delivered,
            dropped=dropped,
            dead_lettered=dead_lettered,
            shadowed=shadowed,
            lag_messages=lag_messages,
            lag_seconds=lag_seconds,
            last_failure=last_failure,
            members=members,
        )

        route_stats.additional_properties = d
        return route_stats

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
