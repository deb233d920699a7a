from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.failed_condition_out import FailedConditionOut
    from ..models.spread_member_config import SpreadMemberConfig


T = TypeVar("T", bound="RouteExplanationOut")


@_attrs_define
class RouteExplanationOut:
    """Explanation of whether a route takes a message.

    Attributes:
        route (str):
        matches (bool):
        failed (list[FailedConditionOut]):
        member (None | SpreadMemberConfig | Unset): Of a spread: the member that gets the message. It is left out for a
            message that was not published and has no key or subject to spread it by.
    """

    route: str
    matches: bool
    failed: list[FailedConditionOut]
    member: None | SpreadMemberConfig | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.spread_member_config import SpreadMemberConfig  # noqa: PLC0415

        route = self.route

        matches = self.matches

        failed = []
        for failed_item_data in self.failed:
            failed_item = failed_item_data.to_dict()
            failed.append(failed_item)

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
                "matches": matches,
                "failed": failed,
            }
        )
        if member is not UNSET:
            field_dict["member"] = member

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.failed_condition_out import FailedConditionOut  # noqa: PLC0415
        from ..models.spread_member_config import SpreadMemberConfig  # noqa: PLC0415

        d = dict(src_dict)
        route = d.pop("route")

        matches = d.pop("matches")

        failed = []
        _failed = d.pop("failed")
        for failed_item_data in _failed:
            failed_item = FailedConditionOut.from_dict(failed_item_data)

            failed.append(failed_item)

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

        route_explanation_out = cls(
            route=route,
            matches=matches,
            failed=failed,
            member=member,
        )

        route_explanation_out.additional_properties = d
        return route_explanation_out

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
