from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.match_test_result_cost import MatchTestResultCost

if TYPE_CHECKING:
    from ..models.failed_condition_out import FailedConditionOut


T = TypeVar("T", bound="MatchTestResult")


@_attrs_define
class MatchTestResult:
    """Result of a match for a message, and the conditions that the message does not meet.

    Attributes:
        matches (bool):
        failed (list[FailedConditionOut]):
        cost (MatchTestResultCost):
    """

    matches: bool
    failed: list[FailedConditionOut]
    cost: MatchTestResultCost
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        matches = self.matches

        failed = []
        for failed_item_data in self.failed:
            failed_item = failed_item_data.to_dict()
            failed.append(failed_item)

        cost = self.cost.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "matches": matches,
                "failed": failed,
                "cost": cost,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.failed_condition_out import FailedConditionOut  # noqa: PLC0415

        d = dict(src_dict)
        matches = d.pop("matches")

        failed = []
        _failed = d.pop("failed")
        for failed_item_data in _failed:
            failed_item = FailedConditionOut.from_dict(failed_item_data)

            failed.append(failed_item)

        cost = MatchTestResultCost(d.pop("cost"))

        match_test_result = cls(
            matches=matches,
            failed=failed,
            cost=cost,
        )

        match_test_result.additional_properties = d
        return match_test_result

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
