from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.appended_range_out import AppendedRangeOut


T = TypeVar("T", bound="AppendedColumns")


@_attrs_define
class AppendedColumns:
    """Ranges of records, and the number of rejected records.

    Attributes:
        ranges (list[AppendedRangeOut]):
        failed (int):
    """

    ranges: list[AppendedRangeOut]
    failed: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        ranges = []
        for ranges_item_data in self.ranges:
            ranges_item = ranges_item_data.to_dict()
            ranges.append(ranges_item)

        failed = self.failed

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "ranges": ranges,
                "failed": failed,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.appended_range_out import AppendedRangeOut  # noqa: PLC0415

        d = dict(src_dict)
        ranges = []
        _ranges = d.pop("ranges")
        for ranges_item_data in _ranges:
            ranges_item = AppendedRangeOut.from_dict(ranges_item_data)

            ranges.append(ranges_item)

        failed = d.pop("failed")

        appended_columns = cls(
            ranges=ranges,
            failed=failed,
        )

        appended_columns.additional_properties = d
        return appended_columns

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
