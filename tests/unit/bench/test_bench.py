"""Arithmetic and tables of the benchmark; measurements are never asserted."""

import pytest

from tests.bench.ratios import Bar, Measured, Round, Row, Unmeasurable, as_json, shown, table
from tests.bench.rounds import Contestant, interleave
from tests.bench.rows_idle import percentile_99

SENDS = Row(name="send", what="one message", unit="calls/s", reference="echo", bar=Bar(0.5))
WAITS = Row(name="wait", what="p99", unit="ms", reference="echo", bar=Bar(2, at_most=True))
READS = Row(name="read", what="500 records", unit="records/s", reference="R")


def test_verdict_uses_median_of_pairwise_ratios():
    """The ratio of the medians would be 60 / 100, and meet the bar."""
    rounds = [Round(90, 100), Round(40, 100), Round(60, 200)]

    measured = Measured(row=SENDS, rounds=rounds)

    assert sorted(measured.ratios) == [0.3, 0.4, 0.9]
    assert measured.verdict == "missed by 20%"


@pytest.mark.parametrize(
    ("bar", "ratio", "missed"),
    [
        (Bar(0.5), 0.5, 0.0),
        (Bar(0.5), 0.9, 0.0),
        (Bar(0.5), 0.4, 0.2),
        (Bar(2, at_most=True), 2.0, 0.0),
        (Bar(2, at_most=True), 0.1, 0.0),
        (Bar(2, at_most=True), 3.0, 0.5),
    ],
)
def test_bar_reports_relative_shortfall(bar, ratio, missed):
    assert bar.missed_by(ratio) == pytest.approx(missed)


def test_zero_reference_is_unmeasurable():
    with pytest.raises(Unmeasurable):
        Round(1, 0)


def test_rows_alternate_with_their_reference():
    order = []

    def measuring(name, value):
        def measure():
            order.append(name)
            return value

        return measure

    contestants = [
        Contestant(SENDS, measuring("send", 50)),
        Contestant(READS, measuring("read", 9)),
    ]
    [sends, reads] = interleave(2, measuring("echo", 100), contestants)

    assert order == ["echo", "send", "read", "echo", "send", "read"]
    assert sends.ratios == [0.5, 0.5]
    assert reads.ratios == [0.09, 0.09]


def test_failing_row_is_skipped_and_others_continue():
    failures = []

    def failing():
        failures.append(1)
        raise Unmeasurable("the queue ran dry")

    contestants = [Contestant(SENDS, failing), Contestant(READS, lambda: 9)]
    [sends, reads] = interleave(3, lambda: 100, contestants)

    assert sends.trouble == "the queue ran dry"
    assert len(failures) == 1
    assert len(reads.rounds) == 3


def test_table_lists_every_row_and_unmeasured_ones():
    measured = [
        Measured(row=SENDS, rounds=[Round(12_000, 20_000)], notes=["at night"]),
        Measured(row=WAITS, trouble="no answer"),
        Measured(row=READS, rounds=[Round(1, 8), Round(3, 8)]),
    ]

    lines = table(measured).splitlines()

    assert [cell.strip() for cell in lines[2].strip("|").split("|")] == [
        *("send", "12,000 calls/s", "echo 20,000", "0.60", "0.60 to 0.60", "≥ 0.5", "met")
    ]
    assert lines[3].split("|")[-2].strip() == "not measured"
    assert [cell.strip() for cell in lines[4].strip("|").split("|")][3:] == [
        *("0.25", "0.12 to 0.38", "", "for information")
    ]
    assert len({len(line) for line in lines[:5]}) == 1
    assert lines[6:] == ["send: at night", "wait: not measured: no answer"]


def test_json_contains_every_round():
    measured = Measured(row=SENDS, rounds=[Round(1, 4), Round(3, 4)])

    told = as_json(measured)

    assert told["rounds"] == [[1, 4], [3, 4]]
    assert told["ratio"] == {"median": 0.5, "min": 0.25, "max": 0.75}
    assert told["verdict"] == "met"
    assert as_json(Measured(row=SENDS, trouble="no wrk"))["trouble"] == "no wrk"


@pytest.mark.parametrize(
    ("number", "words"),
    [(1_234_567.8, "1,234,568"), (100, "100"), (12.345, "12.3"), (0.05, "0.05")],
)
def test_number_is_shown_with_significant_digits(number, words):
    assert shown(number) == words


def test_percentile_99_tolerates_one_slow_sample_in_hundred():
    assert percentile_99([*range(100)]) == 99
    assert percentile_99([*range(1_000)]) == 990
    assert percentile_99([5.0]) == 5.0
