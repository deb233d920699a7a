from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.view_column_out import ViewColumnOut
    from ..models.view_former_out_join_seconds import ViewFormerOutJoinSeconds
    from ..models.view_progress_out import ViewProgressOut
    from ..models.view_report_out import ViewReportOut


T = TypeVar("T", bound="ViewFormerOut")


@_attrs_define
class ViewFormerOut:
    """The revision that the present one has replaced, which is kept up to date for a while.

    Attributes:
        revision (int): Number of the revision.
        output (list[ViewColumnOut]):
        key (list[str]): Columns that identify a row, in the order in which a read of rows takes their values; an empty
            name is an expression that no column shows.
        window_seconds (float | None): Length of the windows; null without windows.
        step_seconds (float | None): Time between the starts of windows; null without windows.
        session_gap_seconds (float | None): Time without records after which a session ends; null without sessions.
        join_seconds (ViewFormerOutJoinSeconds): For how long in event time a record of each stream waits for those that
            match it; empty without a join.
        aggregates (list[str]): Aggregates, and the partial aggregates that rows store.
        stopped (bool): No batch follows until the view is put, or paused and resumed.
        failure (str): Why the last batch failed; empty if it did not.
        progress (ViewProgressOut): Progress of a revision: the records that its rows include.

            `batch` counts batches. `gaps` are records that retention had deleted before they were read.
        report (None | ViewReportOut): Comparison with the rows that it replaced, if it is a rebuild.
        sql (str):
        until (datetime.datetime | None): Time at which it is deleted.
    """

    revision: int
    output: list[ViewColumnOut]
    key: list[str]
    window_seconds: float | None
    step_seconds: float | None
    session_gap_seconds: float | None
    join_seconds: ViewFormerOutJoinSeconds
    aggregates: list[str]
    stopped: bool
    failure: str
    progress: ViewProgressOut
    report: None | ViewReportOut
    sql: str
    until: datetime.datetime | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.view_report_out import ViewReportOut  # noqa: PLC0415

        revision = self.revision

        output = []
        for output_item_data in self.output:
            output_item = output_item_data.to_dict()
            output.append(output_item)

        key = self.key

        window_seconds: float | None
        window_seconds = self.window_seconds

        step_seconds: float | None
        step_seconds = self.step_seconds

        session_gap_seconds: float | None
        session_gap_seconds = self.session_gap_seconds

        join_seconds = self.join_seconds.to_dict()

        aggregates = self.aggregates

        stopped = self.stopped

        failure = self.failure

        progress = self.progress.to_dict()

        report: dict[str, Any] | None
        if isinstance(self.report, ViewReportOut):
            report = self.report.to_dict()
        else:
            report = self.report

        sql = self.sql

        until: None | str
        if isinstance(self.until, datetime.datetime):
            until = self.until.isoformat()
        else:
            until = self.until

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "revision": revision,
                "output": output,
                "key": key,
                "window_seconds": window_seconds,
                "step_seconds": step_seconds,
                "session_gap_seconds": session_gap_seconds,
                "join_seconds": join_seconds,
                "aggregates": aggregates,
                "stopped": stopped,
                "failure": failure,
                "progress": progress,
                "report": report,
                "sql": sql,
                "until": until,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.view_column_out import ViewColumnOut  # noqa: PLC0415
        from ..models.view_former_out_join_seconds import ViewFormerOutJoinSeconds  # noqa: PLC0415
        from ..models.view_progress_out import ViewProgressOut  # noqa: PLC0415
        from ..models.view_report_out import ViewReportOut  # noqa: PLC0415

        d = dict(src_dict)
        revision = d.pop("revision")

        output = []
        _output = d.pop("output")
        for output_item_data in _output:
            output_item = ViewColumnOut.from_dict(output_item_data)

            output.append(output_item)

        key = cast(list[str], d.pop("key"))

        def _parse_window_seconds(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        window_seconds = _parse_window_seconds(d.pop("window_seconds"))

        def _parse_step_seconds(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        step_seconds = _parse_step_seconds(d.pop("step_seconds"))

        def _parse_session_gap_seconds(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        session_gap_seconds = _parse_session_gap_seconds(d.pop("session_gap_seconds"))

        join_seconds = ViewFormerOutJoinSeconds.from_dict(d.pop("join_seconds"))

        aggregates = cast(list[str], d.pop("aggregates"))

        stopped = d.pop("stopped")

        failure = d.pop("failure")

        progress = ViewProgressOut.from_dict(d.pop("progress"))

        def _parse_report(data: object) -> None | ViewReportOut:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                report_type_0 = ViewReportOut.from_dict(data)

                return report_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ViewReportOut, data)

        report = _parse_report(d.pop("report"))

        sql = d.pop("sql")

        def _parse_until(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                until_type_0 = datetime.datetime.fromisoformat(data)

                return until_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        until = _parse_until(d.pop("until"))

        view_former_out = cls(
            revision=revision,
            output=output,
            key=key,
            window_seconds=window_seconds,
            step_seconds=step_seconds,
            session_gap_seconds=session_gap_seconds,
            join_seconds=join_seconds,
            aggregates=aggregates,
            stopped=stopped,
            failure=failure,
            progress=progress,
            report=report,
            sql=sql,
            until=until,
        )

        view_former_out.additional_properties = d
        return view_former_out

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
