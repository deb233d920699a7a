from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.source_range_out import SourceRangeOut
    from ..models.view_as_of import ViewAsOf
    from ..models.view_sources_out_gaps_item import ViewSourcesOutGapsItem
    from ..models.view_sources_out_records_item import ViewSourcesOutRecordsItem
    from ..models.view_sources_out_row import ViewSourcesOutRow


T = TypeVar("T", bound="ViewSourcesOut")


@_attrs_define
class ViewSourcesOut:
    """A row and its sources: ranges of offsets, and records by shard and offset.

    Attributes:
        row (None | ViewSourcesOutRow): The row; null if there is none with this key.
        ranges (list[SourceRangeOut]):
        records (list[ViewSourcesOutRecordsItem]): Records, as a read of the stream returns them.
        gaps (list[ViewSourcesOutGapsItem]): Offsets in the ranges that cannot be read any more, with the reason.
        as_of (ViewAsOf): Revision and progress that rows belong to.
        next_cursor (None | str): Null on the last page. A page has fewer records than its limit, or none, when many
            others lie between.
    """

    row: None | ViewSourcesOutRow
    ranges: list[SourceRangeOut]
    records: list[ViewSourcesOutRecordsItem]
    gaps: list[ViewSourcesOutGapsItem]
    as_of: ViewAsOf
    next_cursor: None | str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.view_sources_out_row import ViewSourcesOutRow  # noqa: PLC0415

        row: dict[str, Any] | None
        if isinstance(self.row, ViewSourcesOutRow):
            row = self.row.to_dict()
        else:
            row = self.row

        ranges = []
        for ranges_item_data in self.ranges:
            ranges_item = ranges_item_data.to_dict()
            ranges.append(ranges_item)

        records = []
        for records_item_data in self.records:
            records_item = records_item_data.to_dict()
            records.append(records_item)

        gaps = []
        for gaps_item_data in self.gaps:
            gaps_item = gaps_item_data.to_dict()
            gaps.append(gaps_item)

        as_of = self.as_of.to_dict()

        next_cursor: None | str
        next_cursor = self.next_cursor

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "row": row,
                "ranges": ranges,
                "records": records,
                "gaps": gaps,
                "as_of": as_of,
                "next_cursor": next_cursor,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.source_range_out import SourceRangeOut  # noqa: PLC0415
        from ..models.view_as_of import ViewAsOf  # noqa: PLC0415
        from ..models.view_sources_out_gaps_item import ViewSourcesOutGapsItem  # noqa: PLC0415
        from ..models.view_sources_out_records_item import ViewSourcesOutRecordsItem  # noqa: PLC0415
        from ..models.view_sources_out_row import ViewSourcesOutRow  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_row(data: object) -> None | ViewSourcesOutRow:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                row_type_0 = ViewSourcesOutRow.from_dict(data)

                return row_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ViewSourcesOutRow, data)

        row = _parse_row(d.pop("row"))

        ranges = []
        _ranges = d.pop("ranges")
        for ranges_item_data in _ranges:
            ranges_item = SourceRangeOut.from_dict(ranges_item_data)

            ranges.append(ranges_item)

        records = []
        _records = d.pop("records")
        for records_item_data in _records:
            records_item = ViewSourcesOutRecordsItem.from_dict(records_item_data)

            records.append(records_item)

        gaps = []
        _gaps = d.pop("gaps")
        for gaps_item_data in _gaps:
            gaps_item = ViewSourcesOutGapsItem.from_dict(gaps_item_data)

            gaps.append(gaps_item)

        as_of = ViewAsOf.from_dict(d.pop("as_of"))

        def _parse_next_cursor(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        next_cursor = _parse_next_cursor(d.pop("next_cursor"))

        view_sources_out = cls(
            row=row,
            ranges=ranges,
            records=records,
            gaps=gaps,
            as_of=as_of,
            next_cursor=next_cursor,
        )

        view_sources_out.additional_properties = d
        return view_sources_out

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
