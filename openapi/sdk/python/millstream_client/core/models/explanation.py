from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.route_explanation_out import RouteExplanationOut


T = TypeVar("T", bound="Explanation")


@_attrs_define
class Explanation:
    """Results of the present routes of a topic for a message.

    Attributes:
        subject (str):
        matches (list[str]): Names of the routes that take the message.
        routes (list[RouteExplanationOut]): Each route, those that take the message first; at most 1,000.
        complete (bool): False if there are more routes than shown.
    """

    subject: str
    matches: list[str]
    routes: list[RouteExplanationOut]
    complete: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        subject = self.subject

        matches = self.matches

        routes = []
        for routes_item_data in self.routes:
            routes_item = routes_item_data.to_dict()
            routes.append(routes_item)

        complete = self.complete

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "subject": subject,
                "matches": matches,
                "routes": routes,
                "complete": complete,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.route_explanation_out import RouteExplanationOut  # noqa: PLC0415

        d = dict(src_dict)
        subject = d.pop("subject")

        matches = cast(list[str], d.pop("matches"))

        routes = []
        _routes = d.pop("routes")
        for routes_item_data in _routes:
            routes_item = RouteExplanationOut.from_dict(routes_item_data)

            routes.append(routes_item)

        complete = d.pop("complete")

        explanation = cls(
            subject=subject,
            matches=matches,
            routes=routes,
            complete=complete,
        )

        explanation.additional_properties = d
        return explanation

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
