from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.view_progress_out_joined import ViewProgressOutJoined
    from ..models.view_progress_out_positions import ViewProgressOutPositions
    from ..models.view_progress_out_tables import ViewProgressOutTables


T = TypeVar("T", bound="ViewProgressOut")


@_attrs_define
class ViewProgressOut:
    """Progress of a revision: the records that its rows include.

    `batch` counts batches. `gaps` are records that retention had deleted before they were read.

        Attributes:
            positions (ViewProgressOutPositions): Next offset to read, by shard: the rows include all before.
            joined (ViewProgressOutJoined): Positions in the other stream of a join, by its name in the query; empty without
                a join.
            tables (ViewProgressOutTables): Positions of the tables that the last batch was joined with, by name: of a
                stream by shard; of a view, its batch by the number of its revision.
            watermark (datetime.datetime | None): Windows that end before are complete, except for late records. Null before
                the first record.
            batch (int):
            rows (int):
            records (int):
            late (int):
            bad (int):
            gaps (int):
            changed_at (datetime.datetime | None): Time of the last batch.
    """

    positions: ViewProgressOutPositions
    joined: ViewProgressOutJoined
    tables: ViewProgressOutTables
    watermark: datetime.datetime | None
    batch: int
    rows: int
    records: int
    late: int
    bad: int
    gaps: int
    changed_at: datetime.datetime | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        positions = self.positions.to_dict()

        joined = self.joined.to_dict()

        tables = self.tables.to_dict()

        watermark: None | str
        if isinstance(self.watermark, datetime.datetime):
            watermark = self.watermark.isoformat()
        else:
            watermark = self.watermark

        batch = self.batch

        rows = self.rows

        records = self.records

        late = self.late

        bad = self.bad

        gaps = self.gaps

        changed_at: None | str
        if isinstance(self.changed_at, datetime.datetime):
            changed_at = self.changed_at.isoformat()
        else:
            changed_at = self.changed_at

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "positions": positions,
                "joined": joined,
                "tables": tables,
                "watermark": watermark,
                "batch": batch,
                "rows": rows,
                "records": records,
                "late": late,
                "bad": bad,
                "gaps": gaps,
                "changed_at": changed_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.view_progress_out_joined import ViewProgressOutJoined  # noqa: PLC0415
        from ..models.view_progress_out_positions import ViewProgressOutPositions  # noqa: PLC0415
        from ..models.view_progress_out_tables import ViewProgressOutTables  # noqa: PLC0415

        d = dict(src_dict)
        positions = ViewProgressOutPositions.from_dict(d.pop("positions"))

        joined = ViewProgressOutJoined.from_dict(d.pop("joined"))

        tables = ViewProgressOutTables.from_dict(d.pop("tables"))

        def _parse_watermark(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                watermark_type_0 = datetime.datetime.fromisoformat(data)

                return watermark_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        watermark = _parse_watermark(d.pop("watermark"))

        batch = d.pop("batch")

        rows = d.pop("rows")

        records = d.pop("records")

        late = d.pop("late")

        bad = d.pop("bad")

        gaps = d.pop("gaps")

        def _parse_changed_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                changed_at_type_0 = datetime.datetime.fromisoformat(data)

                return changed_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        changed_at = _parse_changed_at(d.pop("changed_at"))

        view_progress_out = cls(
            positions=positions,
            joined=joined,
            tables=tables,
            watermark=watermark,
            batch=batch,
            rows=rows,
            records=records,
            late=late,
            bad=bad,
            gaps=gaps,
            changed_at=changed_at,
        )

        view_progress_out.additional_properties = d
        return view_progress_out

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
