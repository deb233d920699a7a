from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.message_route_state import MessageRouteState

T = TypeVar("T", bound="MessageRouteOut")


@_attrs_define
class MessageRouteOut:
    """A route that takes a message, by the decision when it was accepted.

    Attributes:
        route (None | str): Name of the route; null once it is forgotten.
        number (int): Number of the route's revision.
        state (MessageRouteState): State of a message for a route that takes it.
    """

    route: None | str
    number: int
    state: MessageRouteState
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        route: None | str
        route = self.route

        number = self.number

        state = self.state.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "route": route,
                "number": number,
                "state": state,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_route(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        route = _parse_route(d.pop("route"))

        number = d.pop("number")

        state = MessageRouteState(d.pop("state"))

        message_route_out = cls(
            route=route,
            number=number,
            state=state,
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
