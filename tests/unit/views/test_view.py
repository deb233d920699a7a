"""Checks of a view's specification, before its query is planned."""

import pytest

from storage.domain import limits
from storage.domain.errors import ValidationFailed
from storage.domain.streams.start_at import StartAt
from storage.domain.views.sources import SourceMode
from storage.domain.views.view import LatePolicy, ViewInput, ViewQuery, ViewSpec

INPUT = ViewInput(stream="clicks")
TWO = {"b": ViewInput(stream="visits"), "a": INPUT}


def spec_of(sql="select 1", inputs=None, **options):
    return ViewSpec(query=ViewQuery(sql=sql, inputs=inputs or {"c": INPUT}), **options)


def test_spec_within_its_limits_is_accepted():
    spec_of(keep_ms=limits.SECOND_MS, rows_max=limits.VIEW_ROWS_MAX_MAX).check()


def test_relation_is_the_only_input():
    query = spec_of().query

    assert (query.relation, query.input) == ("c", INPUT)


def test_first_stream_of_a_join_is_that_of_the_first_name():
    """Postgres does not keep the order of names."""
    query = spec_of(inputs=TWO).query

    assert (query.relation, query.input, [*query.joined]) == ("a", INPUT, ["b"])
    spec_of(inputs=TWO).check()


@pytest.mark.parametrize(
    ("spec", "pointer"),
    [
        (spec_of(sql=" "), "/sql"),
        (spec_of(sql="x" * (limits.SQL_CHARACTERS_MAX + 1)), "/sql"),
        (spec_of(inputs={"a": INPUT, "b": INPUT, "c": INPUT}), "/from"),
        (ViewSpec(query=ViewQuery(sql="select 1", inputs={})), "/from"),
        (ViewSpec(query=ViewQuery(sql="select 1", inputs=TWO, late=LatePolicy.DROP)), "/late"),
        (ViewSpec(query=ViewQuery(sql="select 1", inputs=TWO, sources=SourceMode.RANGE)), "/sources"),
        (spec_of(inputs={"A b": INPUT}), "/from"),
        (spec_of(inputs={"c": ViewInput(stream="a b")}), "/from/c/stream"),
        (spec_of(inputs={"c": ViewInput(stream="s", watermark_ms=-1)}), "/from/c/watermark_seconds"),
        (spec_of(inputs={"c": ViewInput(stream="s", idle_ms=0)}), "/from/c/idle_seconds"),
        (spec_of(inputs={"c": ViewInput(stream="s", start=StartAt.TIME)}), "/from/c/start_time"),
        (
            spec_of(inputs={"c": ViewInput(stream="s", columns="x" * 20_000)}),
            "/from/c/columns",
        ),
        (spec_of(rows_max=0), "/rows_max"),
        (spec_of(keep_ms=1), "/keep_seconds"),
    ],
)  # fmt: skip
def test_spec_with_a_fault_is_refused(spec, pointer):
    with pytest.raises(ValidationFailed) as refused:
        spec.check()

    assert pointer in [fault.pointer for fault in refused.value.faults]
