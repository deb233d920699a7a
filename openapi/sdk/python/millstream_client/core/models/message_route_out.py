from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.message_route_state import MessageRouteState
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.spread_member_config import SpreadMemberConfig


T = TypeVar("T", bound="MessageRouteOut")


@_attrs_define
class MessageRouteOut:
    """A route that takes a message, by the decision when it was accepted.

    Attributes:
        route (None | str): Name of the route; null once it is forgotten.
        number (int): Number of the route's revision.
        state (MessageRouteState): State of a message for a route that takes it.
        member (None | SpreadMemberConfig | Unset): Of a spread: the member that gets the message. It is left out for a
            message that was not published and has no key or subject to spread it by.
    """

    route: None | str
    number: int
    state: MessageRouteState
    member: None | SpreadMemberConfig | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.spread_member_config import SpreadMemberConfig  # noqa: PLC0415

        route: None | str
        route = self.route

        number = self.number

        state = self.state.value

        member: dict[str, Any] | None | Unset
        if isinstance(self.member, Unset):
            member = UNSET
        elif isinstance(self.member, SpreadMemberConfig):
            member = self.member.to_dict()
        else:
            member = self.member

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "route": route,
                "number": number,
                "state": state,
            }
        )
        if member is not UNSET:
            field_dict["member"] = member

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.spread_member_config import SpreadMemberConfig  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_route(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        route = _parse_route(d.pop("route"))

        number = d.pop("number")

        state = MessageRouteState(d.pop("state"))

        def _parse_member(data: object) -> None | SpreadMemberConfig | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                member_type_0 = SpreadMemberConfig.from_dict(data)

                return member_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | SpreadMemberConfig | Unset, data)

        member = _parse_member(d.pop("member", UNSET))

        message_route_out = cls(
            route=route,
            number=number,
            state=state,
            member=member,
        )

        message_route_out.additional_properties = d
        return message_route_out

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
