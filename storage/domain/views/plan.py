"""Plan of a view's query: its columns, as Spark's analyzer resolved them."""

import re
from collections.abc import Mapping, Sequence

import msgspec

from storage.domain.views.view import ViewSpec

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class ViewColumn(msgspec.Struct, frozen=True):
    """Column of the output, with its type as Spark DDL, such as `decimal(10,2)`."""

    name: str
    type: str


def columns_as_ddl(columns: Sequence[ViewColumn]) -> str:
    """Return columns as Spark DDL, such as `page string, clicks bigint`."""
    return ", ".join(f"{_identifier(column.name)} {column.type}" for column in columns)


def _identifier(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else f"`{name.replace('`', '``')}`"


class KeyColumn(msgspec.Struct, frozen=True):
    """Part of a row's key: a grouping expression.

    `name`: the output column that shows it, empty if none does; for a window, also one that shows its start. `is_window`: the window, its
    start or its end.
    """

    name: str
    type: str
    is_window: bool = False


class ViewPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Result of planning.

    `key`: the grouping expressions in the order of the query, the window last. `window_ms`: length and step of the windows in event time;
    `session_gap_ms`: time without records after which a session ends. A query has one of them, or none. `aggregates`: the aggregates as Spark writes them, with the partial aggregates that rows store.
    `join_waits_ms`: of each stream of a join, for how long in event time its records wait for those that match them. `join_preserved`: in a
    left or right join, the stream whose records without a match are in the rows, once their wait has ended; empty for an inner join.
    """

    columns: tuple[ViewColumn, ...]
    key: tuple[KeyColumn, ...]
    window_ms: tuple[int, int] | None = None
    session_gap_ms: int | None = None
    aggregates: tuple[str, ...] = ()
    join_waits_ms: Mapping[str, int] = {}
    join_preserved: str = ""

    @property
    def has_windows(self) -> bool:
        """Return whether rows have windows, which end."""
        return self.window_ms is not None or self.session_gap_ms is not None

    @property
    def join_delay_ms(self) -> int:
        """Return by how much a join holds back the watermark of its rows; 0 without one."""
        return max(self.join_waits_ms.values(), default=0)

    @property
    def join_buffers_ms(self) -> Mapping[str, int]:
        """Return for how long in event time the records of each stream of a join are buffered.

        Those of the other stream are needed until the wait of each record that is preserved has ended, which shows whether it has matched.
        """
        if not self.join_preserved:
            return self.join_waits_ms
        total_ms = sum(self.join_waits_ms.values())
        return {
            name: wait_ms if name == self.join_preserved else total_ms
            for name, wait_ms in self.join_waits_ms.items()
        }


class SqlRefusal(msgspec.Struct, frozen=True):
    """Reason why a query is not accepted, with its place and what to write instead."""

    problem: str
    instead: str
    line: int
    column: int


class PlanResult(msgspec.Struct, frozen=True, kw_only=True):
    """Plan of a query, or why there is none."""

    plan: ViewPlan | None = None
    refusal: SqlRefusal | None = None


class ViewBackTestSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration that a back-test evaluates for a view, and the plan of its query.

    `created_at_ms`: when the view was created, from when on a query with `start: latest` reads.
    """

    view_id: str
    created_at_ms: int
    spec: ViewSpec
    plan: ViewPlan
