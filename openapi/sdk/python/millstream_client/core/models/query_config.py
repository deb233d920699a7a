from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.query_config_from import QueryConfigFrom


T = TypeVar("T", bound="QueryConfig")


@_attrs_define
class QueryConfig:
    """A query, which is run once.

    Attributes:
        sql (str): A SELECT of Spark SQL over the names in `from`: joins, `group by`, window functions, `order by`,
            `limit`.
        from_ (QueryConfigFrom): Streams, tables and views, under their names in the query.
        rows_max (int | Unset): Rows to return at most. If there are more, `truncated` is true. Default: 1000.
        seconds_max (float | Unset): Time after which the query is ended without rows. Default: 60.0.
    """

    sql: str
    from_: QueryConfigFrom
    rows_max: int | Unset = 1000
    seconds_max: float | Unset = 60.0

    def to_dict(self) -> dict[str, Any]:
        sql = self.sql

        from_ = self.from_.to_dict()

        rows_max = self.rows_max

        seconds_max = self.seconds_max

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "sql": sql,
                "from": from_,
            }
        )
        if rows_max is not UNSET:
            field_dict["rows_max"] = rows_max
        if seconds_max is not UNSET:
            field_dict["seconds_max"] = seconds_max

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.query_config_from import QueryConfigFrom  # noqa: PLC0415

        d = dict(src_dict)
        sql = d.pop("sql")

        from_ = QueryConfigFrom.from_dict(d.pop("from"))

        rows_max = d.pop("rows_max", UNSET)

        seconds_max = d.pop("seconds_max", UNSET)

        query_config = cls(
            sql=sql,
            from_=from_,
            rows_max=rows_max,
            seconds_max=seconds_max,
        )

        return query_config
