from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="BackTestSamples")


@_attrs_define
class BackTestSamples:
    """Ids of the first messages of each kind.

    Attributes:
        matched (list[str]):
        gained (list[str]):
        lost (list[str]):
    """

    matched: list[str]
    gained: list[str]
    lost: list[str]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        matched = self.matched

        gained = self.gained

        lost = self.lost

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "matched": matched,
                "gained": gained,
                "lost": lost,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        matched = cast(list[str], d.pop("matched"))

        gained = cast(list[str], d.pop("gained"))

        lost = cast(list[str], d.pop("lost"))

        back_test_samples = cls(
            matched=matched,
            gained=gained,
            lost=lost,
        )

        back_test_samples.additional_properties = d
        return back_test_samples

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
