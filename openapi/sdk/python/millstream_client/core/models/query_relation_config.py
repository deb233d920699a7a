from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.bad_policy import BadPolicy
from ..models.start_at import StartAt
from ..types import UNSET, Unset

T = TypeVar("T", bound="QueryRelationConfig")


@_attrs_define
class QueryRelationConfig:
    """Relation of a query: a stream, a table or a view. Exactly one of the three is given.

    Attributes:
        stream (None | str | Unset): Stream whose records are read, also those of the archive.
        table (None | str | Unset): Stream that is read as a table: the newest record of each key, with `key`, `value`
            and the `columns`. A record with empty or null data deletes its key.
        view (None | str | Unset): View whose rows are read.
        columns (str | Unset): Columns of the records' JSON data, such as `page string, ms bigint`. Each record also has
            `key`, `value`, `data`, `headers`, `event_time`, `arrival_time`, `shard` and `offset`. Default: ''.
        event_time (str | Unset): Column with the event time, of type timestamp. Without one it is the producer's event
            time, or else the time of arrival. Default: ''.
        start (StartAt | Unset): Start position of a reader that has read nothing.
        start_time (datetime.datetime | None | Unset): With `time`: the first record that arrived then or later.
        end_time (datetime.datetime | None | Unset): Only records that arrived before; null: all that there are now.
        on_bad (BadPolicy | Unset): Treatment of records whose data is not JSON of the declared columns.

            null: the columns that cannot be read are null. skip: the record is left out. Both are counted.
    """

    stream: None | str | Unset = UNSET
    table: None | str | Unset = UNSET
    view: None | str | Unset = UNSET
    columns: str | Unset = ""
    event_time: str | Unset = ""
    start: StartAt | Unset = UNSET
    start_time: datetime.datetime | None | Unset = UNSET
    end_time: datetime.datetime | None | Unset = UNSET
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

        end_time: None | str | Unset
        if isinstance(self.end_time, Unset):
            end_time = UNSET
        elif isinstance(self.end_time, datetime.datetime):
            end_time = self.end_time.isoformat()
        else:
            end_time = self.end_time

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
        if start is not UNSET:
            field_dict["start"] = start
        if start_time is not UNSET:
            field_dict["start_time"] = start_time
        if end_time is not UNSET:
            field_dict["end_time"] = end_time
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

        def _parse_end_time(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                end_time_type_0 = datetime.datetime.fromisoformat(data)

                return end_time_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        end_time = _parse_end_time(d.pop("end_time", UNSET))

        _on_bad = d.pop("on_bad", UNSET)
        on_bad: BadPolicy | Unset
        if isinstance(_on_bad, Unset):
            on_bad = UNSET
        else:
            on_bad = BadPolicy(_on_bad)

        query_relation_config = cls(
            stream=stream,
            table=table,
            view=view,
            columns=columns,
            event_time=event_time,
            start=start,
            start_time=start_time,
            end_time=end_time,
            on_bad=on_bad,
        )

        return query_relation_config
