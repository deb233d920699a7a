from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.row_difference_out import RowDifferenceOut


T = TypeVar("T", bound="ViewReportOut")


@_attrs_define
class ViewReportOut:
    """Comparison of a rebuilt revision with the one that it replaced.

    `exact`: both had read the stream up to the same offsets. Fewer `records` than `former_records`: retention has
    deleted the others.
    `samples` are the first rows that differ, at most 20 and 64 KiB.

        Attributes:
            former (int): Number of the revision that it replaced.
            exact (bool):
            records (int):
            former_records (int):
            added (int):
            removed (int):
            changed (int):
            samples (list[RowDifferenceOut]):
    """

    former: int
    exact: bool
    records: int
    former_records: int
    added: int
    removed: int
    changed: int
    samples: list[RowDifferenceOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        former = self.former

        exact = self.exact

        records = self.records

        former_records = self.former_records

        added = self.added

        removed = self.removed

        changed = self.changed

        samples = []
        for samples_item_data in self.samples:
            samples_item = samples_item_data.to_dict()
            samples.append(samples_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "former": former,
                "exact": exact,
                "records": records,
                "former_records": former_records,
                "added": added,
                "removed": removed,
                "changed": changed,
                "samples": samples,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.row_difference_out import RowDifferenceOut  # noqa: PLC0415

        d = dict(src_dict)
        former = d.pop("former")

        exact = d.pop("exact")

        records = d.pop("records")

        former_records = d.pop("former_records")

        added = d.pop("added")

        removed = d.pop("removed")

        changed = d.pop("changed")

        samples = []
        _samples = d.pop("samples")
        for samples_item_data in _samples:
            samples_item = RowDifferenceOut.from_dict(samples_item_data)

            samples.append(samples_item)

        view_report_out = cls(
            former=former,
            exact=exact,
            records=records,
            former_records=former_records,
            added=added,
            removed=removed,
            changed=changed,
            samples=samples,
        )

        view_report_out.additional_properties = d
        return view_report_out

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
