from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.bad_policy import BadPolicy
from ..models.start_at import StartAt

T = TypeVar("T", bound="ViewInputOut")


@_attrs_define
class ViewInputOut:
    """The stream that a query reads under a name.

    Attributes:
        stream (str):
        columns (str):
        event_time (str):
        watermark_seconds (float):
        idle_seconds (float):
        start (StartAt): Start position of a reader that has read nothing.
        start_time (datetime.datetime | None):
        on_bad (BadPolicy): Treatment of records whose data is not JSON of the declared columns.

            null: the columns that cannot be read are null. skip: the record is left out. Both are counted.
    """

    stream: str
    columns: str
    event_time: str
    watermark_seconds: float
    idle_seconds: float
    start: StartAt
    start_time: datetime.datetime | None
    on_bad: BadPolicy
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        stream = self.stream

        columns = self.columns

        event_time = self.event_time

        watermark_seconds = self.watermark_seconds

        idle_seconds = self.idle_seconds

        start = self.start.value

        start_time: None | str
        if isinstance(self.start_time, datetime.datetime):
            start_time = self.start_time.isoformat()
        else:
            start_time = self.start_time

        on_bad = self.on_bad.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "stream": stream,
                "columns": columns,
                "event_time": event_time,
                "watermark_seconds": watermark_seconds,
                "idle_seconds": idle_seconds,
                "start": start,
                "start_time": start_time,
                "on_bad": on_bad,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        stream = d.pop("stream")

        columns = d.pop("columns")

        event_time = d.pop("event_time")

        watermark_seconds = d.pop("watermark_seconds")

        idle_seconds = d.pop("idle_seconds")

        start = StartAt(d.pop("start"))

        def _parse_start_time(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                start_time_type_0 = datetime.datetime.fromisoformat(data)

                return start_time_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        start_time = _parse_start_time(d.pop("start_time"))

        on_bad = BadPolicy(d.pop("on_bad"))

        view_input_out = cls(
            stream=stream,
            columns=columns,
            event_time=event_time,
            watermark_seconds=watermark_seconds,
            idle_seconds=idle_seconds,
            start=start,
            start_time=start_time,
            on_bad=on_bad,
        )

        view_input_out.additional_properties = d
        return view_input_out

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
