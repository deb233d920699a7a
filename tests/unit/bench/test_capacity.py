"""The model of capacity: its arithmetic, and its table in the documentation."""

from math import log, sqrt

import pytest

from tests.bench.scale.capacity import (
    PRIMARIES,
    TABLE,
    CallCost,
    capacity,
    described,
    imbalance,
    published_costs,
)
from tests.bench.scale.publish import PAGE, with_texts

SEND = CallCost(api_us=200.0, store_us=100.0)
TABLES = """\
<!-- curve: primaries-api -->
| µs of the API's processor a call, by primaries | 1 | 3 | growth |
|---|--:|--:|--:|
| send one message | 150 | 200 | 1.33 x |
| append | 2,100 | 2,000 | 0.952 x |
<!-- end -->
<!-- curve: primaries-store -->
| µs of all primaries' processors a call, by primaries | 1 | 3 | growth |
|---|--:|--:|--:|
| send one message | 80 | 100 | 1.25 x |
| append | 500 | 1,000 | 2 x |
<!-- end -->
"""


def test_one_primary_at_half_load_is_half_a_second_of_calls():
    assert capacity(SEND, 1, 100) == (5_000.0, 2)


def test_fullest_primary_limits_the_rate():
    share = 1 + sqrt(2 * 10 * log(10) / 1_000)

    planned = capacity(SEND, 10, 1_000)

    assert planned.calls_per_second == pytest.approx(10 * 5_000 / share)
    assert planned.api_processes == 17


def test_imbalance_vanishes_with_many_logs():
    assert imbalance(1, 10) == 1
    assert imbalance(100, 10_000) > imbalance(100, 1_000_000) > 1
    assert imbalance(100, 10**9) == pytest.approx(1, abs=0.001)


def test_costs_are_those_on_the_largest_measured_cluster():
    assert published_costs(TABLES) == {
        "send one message": SEND,
        "append": CallCost(2_000.0, 1_000.0),
    }


def test_table_has_rate_and_processes_of_each_call():
    assert described(TABLES, (1, 10)).splitlines()[2:] == [
        "| send one message | 5,000 (2) | 41,000 (17) |",
        "| append | 500 (2) | 4,100 (17) |",
    ]


def test_documented_table_is_computed_from_documented_measurements():
    page = PAGE.read_text()
    computed = described(page)

    assert len(computed.splitlines()) == 2 + len(published_costs(page)) > 2
    assert computed.splitlines()[0].count("|") == len(PRIMARIES) + 2
    assert with_texts(page, {TABLE: computed}) == page
    assert f"<!-- curve: {TABLE} -->\n{computed}" in page
