from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.late_policy import LatePolicy
from ..models.source_mode import SourceMode
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.view_config_from import ViewConfigFrom
    from ..models.view_sink_config import ViewSinkConfig


T = TypeVar("T", bound="ViewConfig")


@_attrs_define
class ViewConfig:
    """The complete configuration of a view.

    Attributes:
        sql (str): A SELECT of Spark SQL over the names in `from`, with columns, filters, joins, `group by`, `window` or
            `session_window`, and aggregates.
        from_ (ViewConfigFrom): The stream or the two that are joined, tables, and views, under their names in the
            query.
        late (LatePolicy | Unset): Treatment of late records: those whose windows have all ended before the watermark.

            count: they change their rows as others do. drop: they change nothing. Both are counted.
        sources (SourceMode | Unset): Storage of the sources of rows. range: the first and the last offset of each
            shard.
        into (list[ViewSinkConfig] | Unset): Streams and queues that get the changes of the rows.
        keep_seconds (float | None | Unset): Rows whose window ended this long before the watermark are deleted. Null:
            never.
        rows_max (int | Unset): A view with more rows stops, and keeps the rows that it has. Default: 1000000.
        keep_former_seconds (float | Unset): A revision that was replaced is kept up to date this long, so that `POST
            …/rollbacks` returns to it at once. It costs what the present one does. At most 30 days. Default: 0.0.
        history_seconds (float | Unset): Earlier versions of the rows can be read for so long, with `at` or `at_batch`.
            0: not at all. Default: 0.0.
    """

    sql: str
    from_: ViewConfigFrom
    late: LatePolicy | Unset = UNSET
    sources: SourceMode | Unset = UNSET
    into: list[ViewSinkConfig] | Unset = UNSET
    keep_seconds: float | None | Unset = UNSET
    rows_max: int | Unset = 1000000
    keep_former_seconds: float | Unset = 0.0
    history_seconds: float | Unset = 0.0

    def to_dict(self) -> dict[str, Any]:
        sql = self.sql

        from_ = self.from_.to_dict()

        late: str | Unset = UNSET
        if not isinstance(self.late, Unset):
            late = self.late.value

        sources: str | Unset = UNSET
        if not isinstance(self.sources, Unset):
            sources = self.sources.value

        into: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.into, Unset):
            into = []
            for into_item_data in self.into:
                into_item = into_item_data.to_dict()
                into.append(into_item)

        keep_seconds: float | None | Unset
        if isinstance(self.keep_seconds, Unset):
            keep_seconds = UNSET
        else:
            keep_seconds = self.keep_seconds

        rows_max = self.rows_max

        keep_former_seconds = self.keep_former_seconds

        history_seconds = self.history_seconds

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "sql": sql,
                "from": from_,
            }
        )
        if late is not UNSET:
            field_dict["late"] = late
        if sources is not UNSET:
            field_dict["sources"] = sources
        if into is not UNSET:
            field_dict["into"] = into
        if keep_seconds is not UNSET:
            field_dict["keep_seconds"] = keep_seconds
        if rows_max is not UNSET:
            field_dict["rows_max"] = rows_max
        if keep_former_seconds is not UNSET:
            field_dict["keep_former_seconds"] = keep_former_seconds
        if history_seconds is not UNSET:
            field_dict["history_seconds"] = history_seconds

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.view_config_from import ViewConfigFrom  # noqa: PLC0415
        from ..models.view_sink_config import ViewSinkConfig  # noqa: PLC0415

        d = dict(src_dict)
        sql = d.pop("sql")

        from_ = ViewConfigFrom.from_dict(d.pop("from"))

        _late = d.pop("late", UNSET)
        late: LatePolicy | Unset
        if isinstance(_late, Unset):
            late = UNSET
        else:
            late = LatePolicy(_late)

        _sources = d.pop("sources", UNSET)
        sources: SourceMode | Unset
        if isinstance(_sources, Unset):
            sources = UNSET
        else:
            sources = SourceMode(_sources)

        _into = d.pop("into", UNSET)
        into: list[ViewSinkConfig] | Unset = UNSET
        if _into is not UNSET:
            into = []
            for into_item_data in _into:
                into_item = ViewSinkConfig.from_dict(into_item_data)

                into.append(into_item)

        def _parse_keep_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        keep_seconds = _parse_keep_seconds(d.pop("keep_seconds", UNSET))

        rows_max = d.pop("rows_max", UNSET)

        keep_former_seconds = d.pop("keep_former_seconds", UNSET)

        history_seconds = d.pop("history_seconds", UNSET)

        view_config = cls(
            sql=sql,
            from_=from_,
            late=late,
            sources=sources,
            into=into,
            keep_seconds=keep_seconds,
            rows_max=rows_max,
            keep_former_seconds=keep_former_seconds,
            history_seconds=history_seconds,
        )

        return view_config
