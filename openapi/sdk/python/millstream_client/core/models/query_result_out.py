from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.job_state import JobState
from ..models.requested_state import RequestedState
from ..models.wait_reason import WaitReason

if TYPE_CHECKING:
    from ..models.query_result_out_as_of import QueryResultOutAsOf
    from ..models.query_result_out_records import QueryResultOutRecords
    from ..models.query_result_out_rows_item import QueryResultOutRowsItem
    from ..models.view_column_out import ViewColumnOut


T = TypeVar("T", bound="QueryResultOut")


@_attrs_define
class QueryResultOut:
    """A query with its rows, once it is done.

    Attributes:
        id (str): Id by which it is read and cancelled.
        state (JobState): State of a job.
        requested_state (RequestedState): Action requested by a running job's owner; its worker sees it at its next
            heartbeat.
        waiting_for (None | WaitReason): Why it makes no progress; null if it does.
        failure (str): Why it failed; empty if it did not.
        created_at (datetime.datetime):
        started_at (datetime.datetime | None):
        ended_at (datetime.datetime | None):
        columns (list[ViewColumnOut]): Columns of the rows, in the order of the query.
        rows (list[QueryResultOutRowsItem]): Each is an object with the columns. Empty until the query is done.
        truncated (bool): The query has more rows than are returned.
        as_of (QueryResultOutAsOf): Records that the rows include, by relation.
        records (QueryResultOutRecords): Records, or rows of a view, that were read, by relation.
        seconds (float | None): Duration of the last attempt.
    """

    id: str
    state: JobState
    requested_state: RequestedState
    waiting_for: None | WaitReason
    failure: str
    created_at: datetime.datetime
    started_at: datetime.datetime | None
    ended_at: datetime.datetime | None
    columns: list[ViewColumnOut]
    rows: list[QueryResultOutRowsItem]
    truncated: bool
    as_of: QueryResultOutAsOf
    records: QueryResultOutRecords
    seconds: float | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        state = self.state.value

        requested_state = self.requested_state.value

        waiting_for: None | str
        if isinstance(self.waiting_for, WaitReason):
            waiting_for = self.waiting_for.value
        else:
            waiting_for = self.waiting_for

        failure = self.failure

        created_at = self.created_at.isoformat()

        started_at: None | str
        if isinstance(self.started_at, datetime.datetime):
            started_at = self.started_at.isoformat()
        else:
            started_at = self.started_at

        ended_at: None | str
        if isinstance(self.ended_at, datetime.datetime):
            ended_at = self.ended_at.isoformat()
        else:
            ended_at = self.ended_at

        columns = []
        for columns_item_data in self.columns:
            columns_item = columns_item_data.to_dict()
            columns.append(columns_item)

        rows = []
        for rows_item_data in self.rows:
            rows_item = rows_item_data.to_dict()
            rows.append(rows_item)

        truncated = self.truncated

        as_of = self.as_of.to_dict()

        records = self.records.to_dict()

        seconds: float | None
        seconds = self.seconds

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "state": state,
                "requested_state": requested_state,
                "waiting_for": waiting_for,
                "failure": failure,
                "created_at": created_at,
                "started_at": started_at,
                "ended_at": ended_at,
                "columns": columns,
                "rows": rows,
                "truncated": truncated,
                "as_of": as_of,
                "records": records,
                "seconds": seconds,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.query_result_out_as_of import QueryResultOutAsOf  # noqa: PLC0415
        from ..models.query_result_out_records import QueryResultOutRecords  # noqa: PLC0415
        from ..models.query_result_out_rows_item import QueryResultOutRowsItem  # noqa: PLC0415
        from ..models.view_column_out import ViewColumnOut  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        state = JobState(d.pop("state"))

        requested_state = RequestedState(d.pop("requested_state"))

        def _parse_waiting_for(data: object) -> None | WaitReason:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                waiting_for_type_0 = WaitReason(data)

                return waiting_for_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | WaitReason, data)

        waiting_for = _parse_waiting_for(d.pop("waiting_for"))

        failure = d.pop("failure")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_started_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                started_at_type_0 = datetime.datetime.fromisoformat(data)

                return started_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        started_at = _parse_started_at(d.pop("started_at"))

        def _parse_ended_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                ended_at_type_0 = datetime.datetime.fromisoformat(data)

                return ended_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        ended_at = _parse_ended_at(d.pop("ended_at"))

        columns = []
        _columns = d.pop("columns")
        for columns_item_data in _columns:
            columns_item = ViewColumnOut.from_dict(columns_item_data)

            columns.append(columns_item)

        rows = []
        _rows = d.pop("rows")
        for rows_item_data in _rows:
            rows_item = QueryResultOutRowsItem.from_dict(rows_item_data)

            rows.append(rows_item)

        truncated = d.pop("truncated")

        as_of = QueryResultOutAsOf.from_dict(d.pop("as_of"))

        records = QueryResultOutRecords.from_dict(d.pop("records"))

        def _parse_seconds(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        seconds = _parse_seconds(d.pop("seconds"))

        query_result_out = cls(
            id=id,
            state=state,
            requested_state=requested_state,
            waiting_for=waiting_for,
            failure=failure,
            created_at=created_at,
            started_at=started_at,
            ended_at=ended_at,
            columns=columns,
            rows=rows,
            truncated=truncated,
            as_of=as_of,
            records=records,
            seconds=seconds,
        )

        query_result_out.additional_properties = d
        return query_result_out

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
