from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.series_out_columns import SeriesOutColumns


T = TypeVar("T", bound="SeriesOut")


@_attrs_define
class SeriesOut:
    """Measurements over time: a value per column at `start_at` and every `step_seconds`.

    The step is ten seconds for up to an hour, and otherwise fifteen minutes. `null` means not measured, which is not
    zero. Levels are means over a step, with the maximum in `<column>_max`; ages and lags are the
    maximum of a step; rates are per second, over the step that ends there.

        Attributes:
            start_at (datetime.datetime):
            step_seconds (float):
            columns (SeriesOutColumns): Values by column; all columns have the same length.
    """

    start_at: datetime.datetime
    step_seconds: float
    columns: SeriesOutColumns
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        start_at = self.start_at.isoformat()

        step_seconds = self.step_seconds

        columns = self.columns.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "start_at": start_at,
                "step_seconds": step_seconds,
                "columns": columns,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.series_out_columns import SeriesOutColumns  # noqa: PLC0415

        d = dict(src_dict)
        start_at = datetime.datetime.fromisoformat(d.pop("start_at"))

        step_seconds = d.pop("step_seconds")

        columns = SeriesOutColumns.from_dict(d.pop("columns"))

        series_out = cls(
            start_at=start_at,
            step_seconds=step_seconds,
            columns=columns,
        )

        series_out.additional_properties = d
        return series_out

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
