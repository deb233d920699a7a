from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.view_as_of_joined import ViewAsOfJoined
    from ..models.view_as_of_positions import ViewAsOfPositions


T = TypeVar("T", bound="ViewAsOf")


@_attrs_define
class ViewAsOf:
    """Revision and progress that rows belong to.

    Attributes:
        revision (int):
        batch (int):
        positions (ViewAsOfPositions): Next offset to read, by shard: the rows include all before.
        joined (ViewAsOfJoined): Positions in the other stream of a join, by its name in the query; empty without a
            join.
        watermark (datetime.datetime | None): Windows that end before are complete, except for late records. Null before
            the first record.
        changed_at (datetime.datetime | None):
    """

    revision: int
    batch: int
    positions: ViewAsOfPositions
    joined: ViewAsOfJoined
    watermark: datetime.datetime | None
    changed_at: datetime.datetime | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        revision = self.revision

        batch = self.batch

        positions = self.positions.to_dict()

        joined = self.joined.to_dict()

        watermark: None | str
        if isinstance(self.watermark, datetime.datetime):
            watermark = self.watermark.isoformat()
        else:
            watermark = self.watermark

        changed_at: None | str
        if isinstance(self.changed_at, datetime.datetime):
            changed_at = self.changed_at.isoformat()
        else:
            changed_at = self.changed_at

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "revision": revision,
                "batch": batch,
                "positions": positions,
                "joined": joined,
                "watermark": watermark,
                "changed_at": changed_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.view_as_of_joined import ViewAsOfJoined  # noqa: PLC0415
        from ..models.view_as_of_positions import ViewAsOfPositions  # noqa: PLC0415

        d = dict(src_dict)
        revision = d.pop("revision")

        batch = d.pop("batch")

        positions = ViewAsOfPositions.from_dict(d.pop("positions"))

        joined = ViewAsOfJoined.from_dict(d.pop("joined"))

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

        view_as_of = cls(
            revision=revision,
            batch=batch,
            positions=positions,
            joined=joined,
            watermark=watermark,
            changed_at=changed_at,
        )

        view_as_of.additional_properties = d
        return view_as_of

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
