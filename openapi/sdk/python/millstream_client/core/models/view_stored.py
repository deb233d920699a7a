from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.late_policy import LatePolicy
from ..models.source_mode import SourceMode

if TYPE_CHECKING:
    from ..models.field_change import FieldChange
    from ..models.view_column_out import ViewColumnOut
    from ..models.view_sink_out import ViewSinkOut
    from ..models.view_stored_from import ViewStoredFrom


T = TypeVar("T", bound="ViewStored")


@_attrs_define
class ViewStored:
    """A view after a PUT, what the PUT changed, and the columns of its rows.

    Attributes:
        name (str):
        sql (str):
        from_ (ViewStoredFrom):
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
        created (bool): False if the object existed.
        dry_run (bool): True if nothing was stored.
        changes (list[FieldChange]): Fields that differ from those before.
        output (list[ViewColumnOut]):
        key (list[str]): Columns that identify a row, in the order in which a read of rows takes their values; an empty
            name is an expression that no column shows.
    """

    name: str
    sql: str
    from_: ViewStoredFrom
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
    created: bool
    dry_run: bool
    changes: list[FieldChange]
    output: list[ViewColumnOut]
    key: list[str]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
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

        created = self.created

        dry_run = self.dry_run

        changes = []
        for changes_item_data in self.changes:
            changes_item = changes_item_data.to_dict()
            changes.append(changes_item)

        output = []
        for output_item_data in self.output:
            output_item = output_item_data.to_dict()
            output.append(output_item)

        key = self.key

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
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
                "created": created,
                "dry_run": dry_run,
                "changes": changes,
                "output": output,
                "key": key,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.field_change import FieldChange  # noqa: PLC0415
        from ..models.view_column_out import ViewColumnOut  # noqa: PLC0415
        from ..models.view_sink_out import ViewSinkOut  # noqa: PLC0415
        from ..models.view_stored_from import ViewStoredFrom  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        sql = d.pop("sql")

        from_ = ViewStoredFrom.from_dict(d.pop("from"))

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

        created = d.pop("created")

        dry_run = d.pop("dry_run")

        changes = []
        _changes = d.pop("changes")
        for changes_item_data in _changes:
            changes_item = FieldChange.from_dict(changes_item_data)

            changes.append(changes_item)

        output = []
        _output = d.pop("output")
        for output_item_data in _output:
            output_item = ViewColumnOut.from_dict(output_item_data)

            output.append(output_item)

        key = cast(list[str], d.pop("key"))

        view_stored = cls(
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
            created=created,
            dry_run=dry_run,
            changes=changes,
            output=output,
            key=key,
        )

        view_stored.additional_properties = d
        return view_stored

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
