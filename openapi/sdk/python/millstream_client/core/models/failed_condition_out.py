from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="FailedConditionOut")


@_attrs_define
class FailedConditionOut:
    """A condition that a message does not meet.

    Attributes:
        match (int): Number of the match in the list, from 0.
        path (str): Field that it reads, such as `body.total`.
        expected (Any): The condition.
        actual (list[Any]): Values of the message; empty if it has none.
    """

    match: int
    path: str
    expected: Any
    actual: list[Any]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        match = self.match

        path = self.path

        expected = self.expected

        actual = self.actual

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "match": match,
                "path": path,
                "expected": expected,
                "actual": actual,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        match = d.pop("match")

        path = d.pop("path")

        expected = d.pop("expected")

        actual = cast(list[Any], d.pop("actual"))

        failed_condition_out = cls(
            match=match,
            path=path,
            expected=expected,
            actual=actual,
        )

        failed_condition_out.additional_properties = d
        return failed_condition_out

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
