"""Parsing of durations, times and positions."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.cli.grammar.parsers import (
    StreamPosition,
    parse_offsets,
    parse_position,
    parse_time,
    show_age,
)
from api.config.durations import parse_duration, show_duration

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


INVALID_DURATIONS = ["", "m", "10x", "-1s", "10 m", "1h30", "1e3", "٣s", "nan"]
VALID_DURATIONS = [
    ("30", 30),
    ("0", 0),
    ("1.5", 1.5),
    ("500ms", 0.5),
    ("10m", 600),
    ("2h", 7_200),
    ("1d", 86_400),
    ("2w", 1_209_600),
    ("1h30m", 5_400),
]
"""Durations and their seconds, also for the fields of the dashboard."""


@pytest.mark.parametrize(("text", "seconds"), VALID_DURATIONS)
def test_duration_is_parsed_to_seconds(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", INVALID_DURATIONS)
def test_invalid_duration_is_rejected(text):
    with pytest.raises(ValueError, match="is not a duration: use 30s, 10m, 2h or 1d"):
        parse_duration(text)


@given(st.integers(0, 10**7))
def test_displayed_duration_can_be_parsed(seconds):
    assert parse_duration(show_duration(seconds)) == pytest.approx(seconds, rel=1e-5)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0s"),
        (0.9, "0s"),
        (59, "59s"),
        (60, "1m"),
        (250, "4m10s"),
        (3_600, "1h"),
        (3_605, "1h"),
        (12_000, "3h20m"),
        (187_200, "2d4h"),
    ],
)
def test_age_has_two_largest_units(seconds, text):
    assert show_age(seconds) == text


def test_time_is_rfc_3339_or_relative():
    assert parse_time("2026-01-31T11:00:00Z", NOW) == NOW - timedelta(hours=1)
    assert parse_time("2026-01-31T13:00:00+02:00", NOW) == NOW - timedelta(hours=1)
    assert parse_time("1h", NOW) == NOW - timedelta(hours=1)
    assert parse_time("2026-01-31T11:00:00", NOW).tzinfo is not None


def test_position_is_an_end_time_or_offset():
    assert (
        parse_position("earliest", NOW).start == parse_position("oldest", NOW).start == "earliest"
    )
    assert parse_position("latest", NOW).start == "latest"
    assert parse_position("10m", NOW) == StreamPosition(time=NOW - timedelta(minutes=10))
    assert parse_position("17", NOW) == StreamPosition(offset=17)
    with pytest.raises(ValueError, match="use earliest, latest, 10m, 2026-01-31T12:00:00Z or an"):
        parse_position("yesterday", NOW)


def test_offsets_are_given_per_shard():
    assert parse_offsets("0=120,11=98") == {0: 120, 11: 98}
    with pytest.raises(ValueError, match="use 0=120,1=98"):
        parse_offsets("0=a")
