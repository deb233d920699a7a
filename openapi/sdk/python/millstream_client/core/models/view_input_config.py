from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.bad_policy import BadPolicy
from ..models.start_at import StartAt
from ..types import UNSET, Unset

T = TypeVar("T", bound="ViewInputConfig")


@_attrs_define
class ViewInputConfig:
    """Relation of a query: a stream that it follows, a table or a view. One is given.

    Attributes:
        stream (None | str | Unset):
        table (None | str | Unset): Stream that is read as a table, for joins: the newest record of each key, with
            `key`, `value` and the `columns`. A record with empty or null data deletes its key.
        view (None | str | Unset): Another view, whose rows are read as a table, for joins, with the columns that they
            have when this view is put.
        columns (str | Unset): Columns of the records' JSON data, such as `page string, ms bigint`. Each record also has
            `key`, `value`, `data`, `headers`, `event_time`, `arrival_time`, `shard` and `offset`. Default: ''.
        event_time (str | Unset): Column with the event time, of type timestamp. Without one it is the producer's event
            time, or else the time of arrival. Default: ''.
        watermark_seconds (float | Unset): Distance of the watermark behind the newest event time of a shard. Default:
            600.0.
        idle_seconds (float | Unset): A shard without records for this long does not hold the watermark back. Default:
            60.0.
        start (StartAt | Unset): Start position of a reader that has read nothing.
        start_time (datetime.datetime | None | Unset): With `time`: start with the first record that arrived then or
            later.
        on_bad (BadPolicy | Unset): Treatment of records whose data is not JSON of the declared columns.

            null: the columns that cannot be read are null. skip: the record is left out. Both are counted.
    """

    stream: None | str | Unset = UNSET
    table: None | str | Unset = UNSET
    view: None | str | Unset = UNSET
    columns: str | Unset = ""
    event_time: str | Unset = ""
    watermark_seconds: float | Unset = 600.0
    idle_seconds: float | Unset = 60.0
    start: StartAt | Unset = UNSET
    start_time: datetime.datetime | None | Unset = UNSET
    on_bad: BadPolicy | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        stream: None | str | Unset
        if isinstance(self.stream, Unset):
            stream = UNSET
        else:
            stream = self.stream

        table: None | str | Unset
        if isinstance(self.table, Unset):
            table = UNSET
        else:
            table = self.table

        view: None | str | Unset
        if isinstance(self.view, Unset):
            view = UNSET
        else:
            view = self.view

        columns = self.columns

        event_time = self.event_time

        watermark_seconds = self.watermark_seconds

        idle_seconds = self.idle_seconds

        start: str | Unset = UNSET
        if not isinstance(self.start, Unset):
            start = self.start.value

        start_time: None | str | Unset
        if isinstance(self.start_time, Unset):
            start_time = UNSET
        elif isinstance(self.start_time, datetime.datetime):
            start_time = self.start_time.isoformat()
        else:
            start_time = self.start_time

        on_bad: str | Unset = UNSET
        if not isinstance(self.on_bad, Unset):
            on_bad = self.on_bad.value

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if stream is not UNSET:
            field_dict["stream"] = stream
        if table is not UNSET:
            field_dict["table"] = table
        if view is not UNSET:
            field_dict["view"] = view
        if columns is not UNSET:
            field_dict["columns"] = columns
        if event_time is not UNSET:
            field_dict["event_time"] = event_time
        if watermark_seconds is not UNSET:
            field_dict["watermark_seconds"] = watermark_seconds
        if idle_seconds is not UNSET:
            field_dict["idle_seconds"] = idle_seconds
        if start is not UNSET:
            field_dict["start"] = start
        if start_time is not UNSET:
            field_dict["start_time"] = start_time
        if on_bad is not UNSET:
            field_dict["on_bad"] = on_bad

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_stream(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        stream = _parse_stream(d.pop("stream", UNSET))

        def _parse_table(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        table = _parse_table(d.pop("table", UNSET))

        def _parse_view(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        view = _parse_view(d.pop("view", UNSET))

        columns = d.pop("columns", UNSET)

        event_time = d.pop("event_time", UNSET)

        watermark_seconds = d.pop("watermark_seconds", UNSET)

        idle_seconds = d.pop("idle_seconds", UNSET)

        _start = d.pop("start", UNSET)
        start: StartAt | Unset
        if isinstance(_start, Unset):
            start = UNSET
        else:
            start = StartAt(_start)

        def _parse_start_time(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                start_time_type_0 = datetime.datetime.fromisoformat(data)

                return start_time_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        start_time = _parse_start_time(d.pop("start_time", UNSET))

        _on_bad = d.pop("on_bad", UNSET)
        on_bad: BadPolicy | Unset
        if isinstance(_on_bad, Unset):
            on_bad = UNSET
        else:
            on_bad = BadPolicy(_on_bad)

        view_input_config = cls(
            stream=stream,
            table=table,
            view=view,
            columns=columns,
            event_time=event_time,
            watermark_seconds=watermark_seconds,
            idle_seconds=idle_seconds,
            start=start,
            start_time=start_time,
            on_bad=on_bad,
        )

        return view_input_config
