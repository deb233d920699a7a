from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.message_route_out import MessageRouteOut


T = TypeVar("T", bound="MessageRoutes")


@_attrs_define
class MessageRoutes:
    """Routes that take a message, in the order of their numbers.

    Attributes:
        id (str):
        published_at (datetime.datetime):
        routes (list[MessageRouteOut]):
    """

    id: str
    published_at: datetime.datetime
    routes: list[MessageRouteOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        published_at = self.published_at.isoformat()

        routes = []
        for routes_item_data in self.routes:
            routes_item = routes_item_data.to_dict()
            routes.append(routes_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "published_at": published_at,
                "routes": routes,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.message_route_out import MessageRouteOut  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        published_at = datetime.datetime.fromisoformat(d.pop("published_at"))

        routes = []
        _routes = d.pop("routes")
        for routes_item_data in _routes:
            routes_item = MessageRouteOut.from_dict(routes_item_data)

            routes.append(routes_item)

        message_routes = cls(
            id=id,
            published_at=published_at,
            routes=routes,
        )

        message_routes.additional_properties = d
        return message_routes

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
