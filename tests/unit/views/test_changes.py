"""Changes of rows as sinks get them: conditions, once for each key, final rows and corrections."""

from typing import Any

import msgspec
import pytest

from storage.domain import limits
from storage.domain.errors import ValidationFailed
from storage.domain.views.changes import (
    ChangeKind,
    RowDifference,
    RowUpdate,
    SinkMessage,
    SinkReport,
    ViewChanges,
)
from storage.domain.views.final_position import FinalPosition
from storage.domain.views.plan import KeyColumn, ViewColumn, ViewPlan
from storage.domain.views.progress import RevisionReport
from storage.domain.views.sink import Emit, ViewSink
from storage.domain.views.view import ViewInput, ViewQuery, ViewSpec

PLAN = ViewPlan(
    columns=(ViewColumn("page", "string"), ViewColumn("clicks", "bigint")),
    key=(KeyColumn("page", "string"), KeyColumn("", "timestamp", is_window=True)),
    window_ms=(1_000, 1_000),
)
MANY = ViewSink(queue="alerts", when="clicks > 10")
FIRST = ViewSink(queue="alerts", when="clicks > 10", once_per_key=True)
FINAL = ViewSink(stream="totals", emit=Emit.FINAL)
END_MS = 1_000


def json_of(clicks: int | None) -> str | None:
    if clicks is None:
        return None
    return msgspec.json.encode({"page": "home", "clicks": clicks}).decode()


def changes(
    sink: ViewSink, before: int | None, after: int | None, final: FinalPosition | None = None
) -> list[SinkMessage]:
    update = RowUpdate(b"k", json_of(before), json_of(after), END_MS)
    return [*ViewChanges(PLAN, [sink]).of_update(update, final)]


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (None, 1, ChangeKind.INSERT),
        (1, 2, ChangeKind.UPDATE),
        (2, None, ChangeKind.DELETE),
        (2, 2, None),
        (None, None, None),
    ],
)
def test_sink_without_condition_gets_every_change(before, after, kind):
    found = changes(ViewSink(stream="changes"), before, after)

    row = None if kind is ChangeKind.DELETE else json_of(after)
    expected = SinkMessage("stream:changes", kind, "home", row, json_of(before)) if kind else None
    assert found == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("before", "after", "kind", "first"),
    [
        (None, 10, None, None),
        (None, 11, ChangeKind.INSERT, ChangeKind.INSERT),
        (10, 11, ChangeKind.INSERT, ChangeKind.INSERT),
        (11, 12, ChangeKind.UPDATE, None),
        (11, 10, ChangeKind.DELETE, None),
        (11, None, ChangeKind.DELETE, None),
        (9, 10, None, None),
    ],
)
def test_sink_sees_the_rows_for_which_its_condition_holds(before, after, kind, first):
    assert [one.change for one in changes(MANY, before, after)] == ([kind] if kind else [])
    assert [one.change for one in changes(FIRST, before, after)] == ([first] if first else [])


def test_row_of_a_window_is_final_once_and_then_corrected():
    emitted = FinalPosition(END_MS)

    assert changes(FINAL, 1, 2) == []
    assert changes(FINAL, 1, 2, FinalPosition(END_MS - 1)) == []
    [final] = ViewChanges(PLAN, [FINAL, MANY]).of_final(json_of(2) or "")
    [correction] = changes(FINAL, 2, 3, emitted)
    [removal] = changes(FINAL, 2, None, emitted)

    assert (final.sink, final.change, final.before) == ("stream:totals", ChangeKind.FINAL, None)
    assert (correction.change, correction.row) == (ChangeKind.CORRECTION, json_of(3))
    assert (removal.change, removal.row, removal.before) == (
        ChangeKind.CORRECTION,
        None,
        json_of(2),
    )


def test_final_sink_has_its_condition_and_may_leave_out_corrections():
    large = ViewSink(stream="totals", emit=Emit.FINAL, when="clicks > 10")
    once = ViewSink(stream="totals", emit=Emit.FINAL, once_per_key=True)
    emitted = FinalPosition(END_MS)

    finals = [[*ViewChanges(PLAN, [large]).of_final(json_of(clicks) or "")] for clicks in (10, 11)]

    assert [len(one) for one in finals] == [0, 1]
    assert changes(large, 9, 10, emitted) == []
    assert changes(once, 1, 2, emitted) == changes(once, None, 2, emitted) == []


def test_position_within_a_window_has_the_rows_up_to_its_key():
    position = FinalPosition(END_MS, b"m")

    included = [position.includes(*row) for row in ((END_MS, b"m"), (END_MS, b"n"), (999, b"z"))]

    assert included == [True, False, True]
    assert FinalPosition(END_MS).includes(END_MS, b"zz")
    assert not FinalPosition(END_MS).includes(END_MS + 1, b"")
    assert position.bound < FinalPosition(END_MS).bound


@pytest.mark.parametrize(
    ("columns", "row", "key"),
    [
        (["page"], {"page": "home"}, "home"),
        (["n"], {"n": 7}, "7"),
        (["page"], {"page": None}, "null"),
        (["page", "n"], {"page": "home", "n": 7}, '["home",7]'),
        ([], {"page": "home"}, "[]"),
    ],
)
def test_key_of_a_message_is_the_key_of_the_row(columns, row, key):
    plan = ViewPlan(columns=(), key=tuple(KeyColumn(name, "string") for name in columns))
    update = RowUpdate(b"k", None, msgspec.json.encode(row).decode())

    [message] = ViewChanges(plan, [ViewSink(stream="changes")]).of_update(update, None)

    assert message.key == key


@pytest.mark.parametrize(
    ("when", "row", "holds"),
    [
        ("key = 'home' AND size > 1", {"key": "home", "size": 2}, True),
        ("user.name = 'ann'", {"name": "ann"}, True),
        ("\"page.name\" LIKE 'h%'", {"page.name": "home"}, True),
        ("vip", {"vip": True}, True),
        ("a IS NULL", {"a": None}, True),
        ("a > 1", {"a": None}, False),
        ("a > 1.5", {"a": 2}, True),
        ("a = '2'", {"a": 2}, False),
    ],
)
def test_names_of_a_condition_are_columns(when, row, holds):
    update = RowUpdate(b"k", None, msgspec.json.encode(row).decode())
    sink = ViewSink(stream="changes", when=when)

    assert bool([*ViewChanges(PLAN, [sink]).of_update(update, None)]) is holds


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({}, "/into/0"),
        ({"stream": "s", "queue": "q"}, "/into/0"),
        ({"stream": "no such name"}, "/into/0/stream"),
        ({"stream": "topic:orders"}, "/into/0/stream"),
        ({"stream": "clicks"}, "/into/0/stream"),
        ({"queue": "q", "when": "clicks >"}, "/into/0/when"),
        ({"queue": "q", "when": "length(page) > 1"}, "/into/0/when"),
    ],
)
def test_faults_of_a_sink_name_its_field(fields: dict[str, Any], pointer):
    query = ViewQuery(sql="select 1", inputs={"c": ViewInput(stream="clicks")})

    with pytest.raises(ValidationFailed) as refused:
        ViewSpec(query=query, into=(ViewSink(**fields),)).check()

    assert [fault.pointer for fault in refused.value.faults] == [pointer]


def test_two_sinks_with_one_target_and_too_many_sinks_are_refused():
    query = ViewQuery(sql="select 1", inputs={"c": ViewInput(stream="clicks")})
    sinks = [ViewSink(queue=f"q{nth}") for nth in range(9)]

    for into in ((FIRST, MANY), tuple(sinks)):
        with pytest.raises(ValidationFailed):
            ViewSpec(query=query, into=into).check()
    ViewSpec(query=query, into=tuple(sinks[:8])).check()


@pytest.mark.parametrize(
    ("size", "shown"),
    [(10, 3), (limits.VIEW_SAMPLES_BYTES // 2, 2), (limits.VIEW_ROW_BYTES_MAX, 0)],
)
def test_samples_are_bounded_and_all_are_counted(size, shown):
    messages = [SinkMessage("queue:a", ChangeKind.INSERT, "k", "x" * size, None) for _ in range(9)]
    differences = [RowDifference(None, "x" * size) for _ in range(9)]
    report = RevisionReport(
        former=1, is_exact=True, records=9, former_records=9, sinks=(SinkReport("queue:a"),)
    )

    for first in (0, 2, 7):
        part = slice(first, {0: 2, 2: 7, 7: 9}[first])
        report = report.with_messages(messages[part], 3)
        report = report.with_differences(differences[part], 3)

    [sink] = report.sinks
    assert (report.added, sink.messages) == (9, 9)
    assert (len(report.samples), len(sink.samples)) == (shown, shown)
