from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.row_difference_out import RowDifferenceOut
    from ..models.view_back_test_sink import ViewBackTestSink


T = TypeVar("T", bound="ViewBackTestResult")


@_attrs_define
class ViewBackTestResult:
    """Comparison of the rows of a back-test with those that the view had when it began.

    `exact`: both include the stream up to the same offsets. Fewer `records` than `view_records`: the configuration
    starts later, or
    retention has deleted the others. `samples` are the first rows that differ, at most 20 and 64 KiB: `before` is the
    view's.

        Attributes:
            revision (int): Number of the view's revision.
            exact (bool):
            records (int):
            view_records (int):
            added (int):
            removed (int):
            changed (int):
            samples (list[RowDifferenceOut]):
            sinks (list[ViewBackTestSink]):
    """

    revision: int
    exact: bool
    records: int
    view_records: int
    added: int
    removed: int
    changed: int
    samples: list[RowDifferenceOut]
    sinks: list[ViewBackTestSink]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        revision = self.revision

        exact = self.exact

        records = self.records

        view_records = self.view_records

        added = self.added

        removed = self.removed

        changed = self.changed

        samples = []
        for samples_item_data in self.samples:
            samples_item = samples_item_data.to_dict()
            samples.append(samples_item)

        sinks = []
        for sinks_item_data in self.sinks:
            sinks_item = sinks_item_data.to_dict()
            sinks.append(sinks_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "revision": revision,
                "exact": exact,
                "records": records,
                "view_records": view_records,
                "added": added,
                "removed": removed,
                "changed": changed,
                "samples": samples,
                "sinks": sinks,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.row_difference_out import RowDifferenceOut  # noqa: PLC0415
        from ..models.view_back_test_sink import ViewBackTestSink  # noqa: PLC0415

        d = dict(src_dict)
        revision = d.pop("revision")

        exact = d.pop("exact")

        records = d.pop("records")

        view_records = d.pop("view_records")

        added = d.pop("added")

        removed = d.pop("removed")

        changed = d.pop("changed")

        samples = []
        _samples = d.pop("samples")
        for samples_item_data in _samples:
            samples_item = RowDifferenceOut.from_dict(samples_item_data)

            samples.append(samples_item)

        sinks = []
        _sinks = d.pop("sinks")
        for sinks_item_data in _sinks:
            sinks_item = ViewBackTestSink.from_dict(sinks_item_data)

            sinks.append(sinks_item)

        view_back_test_result = cls(
            revision=revision,
            exact=exact,
            records=records,
            view_records=view_records,
            added=added,
            removed=removed,
            changed=changed,
            samples=samples,
            sinks=sinks,
        )

        view_back_test_result.additional_properties = d
        return view_back_test_result

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
