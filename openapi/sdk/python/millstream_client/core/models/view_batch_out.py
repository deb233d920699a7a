from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.view_batch_out_joined import ViewBatchOutJoined
    from ..models.view_batch_out_positions import ViewBatchOutPositions


T = TypeVar("T", bound="ViewBatchOut")


@_attrs_define
class ViewBatchOut:
    """A batch: the records before its positions that the batch before did not include.

    `rows` is the number of rows that it changed.

        Attributes:
            batch (int):
            positions (ViewBatchOutPositions): Next offset to read, by shard: the rows include all before.
            joined (ViewBatchOutJoined): Positions in the other stream of a join, by its name in the query; empty without a
                join.
            watermark (datetime.datetime | None): Windows that end before are complete, except for late records. Null before
                the first record.
            records (int):
            late (int):
            bad (int):
            gaps (int):
            rows (int):
            seconds (float):
            at (datetime.datetime):
    """

    batch: int
    positions: ViewBatchOutPositions
    joined: ViewBatchOutJoined
    watermark: datetime.datetime | None
    records: int
    late: int
    bad: int
    gaps: int
    rows: int
    seconds: float
    at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        batch = self.batch

        positions = self.positions.to_dict()

        joined = self.joined.to_dict()

        watermark: None | str
        if isinstance(self.watermark, datetime.datetime):
            watermark = self.watermark.isoformat()
        else:
            watermark = self.watermark

        records = self.records

        late = self.late

        bad = self.bad

        gaps = self.gaps

        rows = self.rows

        seconds = self.seconds

        at = self.at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "batch": batch,
                "positions": positions,
                "joined": joined,
                "watermark": watermark,
                "records": records,
                "late": late,
                "bad": bad,
                "gaps": gaps,
                "rows": rows,
                "seconds": seconds,
                "at": at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.view_batch_out_joined import ViewBatchOutJoined  # noqa: PLC0415
        from ..models.view_batch_out_positions import ViewBatchOutPositions  # noqa: PLC0415

        d = dict(src_dict)
        batch = d.pop("batch")

        positions = ViewBatchOutPositions.from_dict(d.pop("positions"))

        joined = ViewBatchOutJoined.from_dict(d.pop("joined"))

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

        records = d.pop("records")

        late = d.pop("late")

        bad = d.pop("bad")

        gaps = d.pop("gaps")

        rows = d.pop("rows")

        seconds = d.pop("seconds")

        at = datetime.datetime.fromisoformat(d.pop("at"))

        view_batch_out = cls(
            batch=batch,
            positions=positions,
            joined=joined,
            watermark=watermark,
            records=records,
            late=late,
            bad=bad,
            gaps=gaps,
            rows=rows,
            seconds=seconds,
            at=at,
        )

        view_batch_out.additional_properties = d
        return view_batch_out

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
