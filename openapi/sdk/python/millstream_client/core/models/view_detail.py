from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.late_policy import LatePolicy
from ..models.source_mode import SourceMode
from ..models.view_state import ViewState

if TYPE_CHECKING:
    from ..models.view_column_out import ViewColumnOut
    from ..models.view_detail_from import ViewDetailFrom
    from ..models.view_detail_join_seconds import ViewDetailJoinSeconds
    from ..models.view_former_out import ViewFormerOut
    from ..models.view_progress_out import ViewProgressOut
    from ..models.view_report_out import ViewReportOut
    from ..models.view_revision_out import ViewRevisionOut
    from ..models.view_sink_out import ViewSinkOut
    from ..models.view_sink_state import ViewSinkState


T = TypeVar("T", bound="ViewDetail")


@_attrs_define
class ViewDetail:
    """A view with the revision that answers reads, and the one that replaces it.

    Attributes:
        revision (int): Number of the revision.
        output (list[ViewColumnOut]):
        key (list[str]): Columns that identify a row, in the order in which a read of rows takes their values; an empty
            name is an expression that no column shows.
        window_seconds (float | None): Length of the windows; null without windows.
        step_seconds (float | None): Time between the starts of windows; null without windows.
        session_gap_seconds (float | None): Time without records after which a session ends; null without sessions.
        join_seconds (ViewDetailJoinSeconds): For how long in event time a record of each stream waits for those that
            match it; empty without a join.
        aggregates (list[str]): Aggregates, and the partial aggregates that rows store.
        stopped (bool): No batch follows until the view is put, or paused and resumed.
        failure (str): Why the last batch failed; empty if it did not.
        progress (ViewProgressOut): Progress of a revision: the records that its rows include.

            `batch` counts batches. `gaps` are records that retention had deleted before they were read.
        report (None | ViewReportOut): Comparison with the rows that it replaced, if it is a rebuild.
        name (str):
        sql (str):
        from_ (ViewDetailFrom):
        late (LatePolicy): Treatment of late records: those whose windows have all ended before the watermark.

            count: they change their rows as others do. drop: they change nothing. Both are counted.
        sources (SourceMode): Storage of the sources of rows. range: the first and the last offset of each shard.
        into (list[ViewSinkOut]):
        keep_seconds (float | None):
        rows_max (int):
        keep_former_seconds (float):
        history_seconds (float):
        paused (bool):
        version (int):
        created_at (datetime.datetime):
        changed_at (datetime.datetime):
        state (ViewState): State of a view.

            building: the rows of another query are computed, while the present ones answer. stopped: too many batches
            failed, or one
            that cannot succeed.
        building (None | ViewRevisionOut): Revision that replaces the present one when it has caught up.
        former (None | ViewFormerOut): Revision that the present one has replaced, to which a rollback returns.
        sinks (list[ViewSinkState]): State of each of `into`.
    """

    revision: int
    output: list[ViewColumnOut]
    key: list[str]
    window_seconds: float | None
    step_seconds: float | None
    session_gap_seconds: float | None
    join_seconds: ViewDetailJoinSeconds
    aggregates: list[str]
    stopped: bool
    failure: str
    progress: ViewProgressOut
    report: None | ViewReportOut
    name: str
    sql: str
    from_: ViewDetailFrom
    late: LatePolicy
    sources: SourceMode
    into: list[ViewSinkOut]
    keep_seconds: float | None
    rows_max: int
    keep_former_seconds: float
    history_seconds: float
    paused: bool
    version: int
    created_at: datetime.datetime
    changed_at: datetime.datetime
    state: ViewState
    building: None | ViewRevisionOut
    former: None | ViewFormerOut
    sinks: list[ViewSinkState]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.view_former_out import ViewFormerOut  # noqa: PLC0415
        from ..models.view_report_out import ViewReportOut  # noqa: PLC0415
        from ..models.view_revision_out import ViewRevisionOut  # noqa: PLC0415

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

        name = self.name

        sql = self.sql

        from_ = self.from_.to_dict()

        late = self.late.value

        sources = self.sources.value

        into = []
        for into_item_data in self.into:
            into_item = into_item_data.to_dict()
            into.append(into_item)

        keep_seconds: float | None
        keep_seconds = self.keep_seconds

        rows_max = self.rows_max

        keep_former_seconds = self.keep_former_seconds

        history_seconds = self.history_seconds

        paused = self.paused

        version = self.version

        created_at = self.created_at.isoformat()

        changed_at = self.changed_at.isoformat()

        state = self.state.value

        building: dict[str, Any] | None
        if isinstance(self.building, ViewRevisionOut):
            building = self.building.to_dict()
        else:
            building = self.building

        former: dict[str, Any] | None
        if isinstance(self.former, ViewFormerOut):
            former = self.former.to_dict()
        else:
            former = self.former

        sinks = []
        for sinks_item_data in self.sinks:
            sinks_item = sinks_item_data.to_dict()
            sinks.append(sinks_item)

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
                "name": name,
                "sql": sql,
                "from": from_,
                "late": late,
                "sources": sources,
                "into": into,
                "keep_seconds": keep_seconds,
                "rows_max": rows_max,
                "keep_former_seconds": keep_former_seconds,
                "history_seconds": history_seconds,
                "paused": paused,
                "version": version,
                "created_at": created_at,
                "changed_at": changed_at,
                "state": state,
                "building": building,
                "former": former,
                "sinks": sinks,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.view_column_out import ViewColumnOut  # noqa: PLC0415
        from ..models.view_detail_from import ViewDetailFrom  # noqa: PLC0415
        from ..models.view_detail_join_seconds import ViewDetailJoinSeconds  # noqa: PLC0415
        from ..models.view_former_out import ViewFormerOut  # noqa: PLC0415
        from ..models.view_progress_out import ViewProgressOut  # noqa: PLC0415
        from ..models.view_report_out import ViewReportOut  # noqa: PLC0415
        from ..models.view_revision_out import ViewRevisionOut  # noqa: PLC0415
        from ..models.view_sink_out import ViewSinkOut  # noqa: PLC0415
        from ..models.view_sink_state import ViewSinkState  # noqa: PLC0415

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

        join_seconds = ViewDetailJoinSeconds.from_dict(d.pop("join_seconds"))

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

        name = d.pop("name")

        sql = d.pop("sql")

        from_ = ViewDetailFrom.from_dict(d.pop("from"))

        late = LatePolicy(d.pop("late"))

        sources = SourceMode(d.pop("sources"))

        into = []
        _into = d.pop("into")
        for into_item_data in _into:
            into_item = ViewSinkOut.from_dict(into_item_data)

            into.append(into_item)

        def _parse_keep_seconds(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        keep_seconds = _parse_keep_seconds(d.pop("keep_seconds"))

        rows_max = d.pop("rows_max")

        keep_former_seconds = d.pop("keep_former_seconds")

        history_seconds = d.pop("history_seconds")

        paused = d.pop("paused")

        version = d.pop("version")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        changed_at = datetime.datetime.fromisoformat(d.pop("changed_at"))

        state = ViewState(d.pop("state"))

        def _parse_building(data: object) -> None | ViewRevisionOut:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                building_type_0 = ViewRevisionOut.from_dict(data)

                return building_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ViewRevisionOut, data)

        building = _parse_building(d.pop("building"))

        def _parse_former(data: object) -> None | ViewFormerOut:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                former_type_0 = ViewFormerOut.from_dict(data)

                return former_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ViewFormerOut, data)

        former = _parse_former(d.pop("former"))

        sinks = []
        _sinks = d.pop("sinks")
        for sinks_item_data in _sinks:
            sinks_item = ViewSinkState.from_dict(sinks_item_data)

            sinks.append(sinks_item)

        view_detail = cls(
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
            name=name,
            sql=sql,
            from_=from_,
            late=late,
            sources=sources,
            into=into,
            keep_seconds=keep_seconds,
            rows_max=rows_max,
            keep_former_seconds=keep_former_seconds,
            history_seconds=history_seconds,
            paused=paused,
            version=version,
            created_at=created_at,
            changed_at=changed_at,
            state=state,
            building=building,
            former=former,
            sinks=sinks,
        )

        view_detail.additional_properties = d
        return view_detail

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
