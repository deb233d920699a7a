"""Histories: since when a condition has held, and what has changed."""

from hypothesis import given
from hypothesis import strategies as st

from storage.domain import limits
from storage.domain.timeseries.history import NO_HISTORY, History, StateCondition, StateStart
from storage.domain.timeseries.samples import Samples

STEP_MS, BEGIN_MS = 10_000, 1_000_000
QUARTER_MS = 15 * limits.MINUTE_MS
DEAD = StateCondition(("dead",))


def chart(start_ms=BEGIN_MS, step_ms=STEP_MS, **columns):
    values = {name: tuple(values) for name, values in columns.items()}
    return Samples(step_ms=step_ms, start_ms=start_ms, columns=values)


def test_start_is_the_first_step_of_the_present_run():
    history = History(chart(dead=[4, 0, 1, 2, 2]))

    assert history.start_of(DEAD) == StateStart(BEGIN_MS + 2 * STEP_MS)


def test_condition_that_ended_has_no_start():
    assert History(chart(dead=[4, 4, 0])).start_of(DEAD) is None
    assert NO_HISTORY.start_of(DEAD) is None


def test_unmeasured_steps_do_not_end_a_run():
    history = History(chart(dead=[0, 1, None, 3, None]))

    assert history.start_of(DEAD) == StateStart(BEGIN_MS + STEP_MS)


def test_run_of_a_new_object_starts_with_its_first_sample():
    history = History(chart(dead=[None, None, 3]))

    assert history.start_of(DEAD) == StateStart(BEGIN_MS + 2 * STEP_MS)


def test_run_as_long_as_the_hour_is_traced_in_the_weeks():
    weeks = chart(start_ms=0, step_ms=QUARTER_MS, dead=[0, 0, 1, 1])

    assert History(chart(dead=[1, 1])).start_of(DEAD) == StateStart(BEGIN_MS, or_earlier=True)
    assert History(chart(start_ms=3 * QUARTER_MS, dead=[1, 1]), weeks).start_of(DEAD) == StateStart(
        2 * QUARTER_MS
    )


def test_missed_first_step_does_not_hide_an_older_run():
    """A sweeper that restarted an hour ago made each old state an hour old."""
    weeks = chart(start_ms=0, step_ms=QUARTER_MS, dead=[0, 1, 1, 1, 1])
    hour = chart(start_ms=4 * QUARTER_MS, dead=[None, 1, 1])

    assert History(hour, weeks).start_of(DEAD) == StateStart(QUARTER_MS)


def test_run_within_the_hour_is_exact():
    """The quarter of an hour in which a new object appeared begins before it did."""
    weeks = chart(start_ms=0, step_ms=QUARTER_MS, dead=[None, None, 1])
    hour = chart(start_ms=2 * QUARTER_MS, dead=[None, None, 1, 1])

    assert History(hour, weeks).start_of(DEAD) == StateStart(2 * QUARTER_MS + 2 * STEP_MS)


def test_run_as_long_as_all_samples_may_be_older():
    weeks = chart(start_ms=0, step_ms=QUARTER_MS, dead=[1, 1, 1])

    start = History(chart(dead=[1, 1]), weeks).start_of(DEAD)

    assert start == StateStart(0, or_earlier=True)


def test_condition_covers_the_sum_of_columns():
    history = History(chart(ready=[1, 3, 4], parked=[0, 1, 1]))

    assert history.start_of(StateCondition(("ready", "parked"), 4)) == StateStart(
        BEGIN_MS + STEP_MS
    )


@given(st.lists(st.integers(0, 3) | st.none(), min_size=1, max_size=40))
def test_condition_holds_at_each_measured_step_from_its_start(values):
    start = History(chart(dead=values)).start_of(DEAD)

    measured = [
        (BEGIN_MS + n * STEP_MS, value) for n, value in enumerate(values) if value is not None
    ]
    since = [value for at_ms, value in measured if start and at_ms >= start.at_ms]
    before = [value for at_ms, value in measured if start and at_ms < start.at_ms]
    assert all(since)
    assert not before or not before[-1]
    assert (start is None) == (not measured or not measured[-1][1])


def test_growth_is_measured_over_five_minutes():
    values = [0] * 60 + [10 * nth for nth in range(31)]

    assert History(chart(ready=values)).growth_per_minute("ready") == 60
    assert History(chart(ready=[5])).growth_per_minute("ready") == 0


def test_increase_is_counted_from_the_lowest_sample():
    assert History(chart(dead=[9, 2, 5])).increase("dead") == 3
    assert History(chart(dead=[None, 4])).increase("dead") == 0
    assert NO_HISTORY.increase("dead") == 0


def test_last_increase_is_searched_in_the_hour_first():
    weeks = chart(start_ms=0, step_ms=QUARTER_MS, dead=[0, 2, 2])

    assert History(chart(dead=[1, 2, 2]), weeks).last_increase_ms("dead") == BEGIN_MS + STEP_MS
    assert History(chart(dead=[2, 2]), weeks).last_increase_ms("dead") == QUARTER_MS
    assert History(chart(dead=[2, 2])).last_increase_ms("dead") is None


def test_positive_value_counts_within_its_window():
    weeks = chart(start_ms=0, step_ms=QUARTER_MS, sent=[1, 0, 0, 0, 0, 0, 0, 0])
    history = History(chart(start_ms=8 * QUARTER_MS, sent=[0, 0]), weeks)

    assert history.has_been_positive("sent", 7 * QUARTER_MS)
    assert not history.has_been_positive("sent", 6 * QUARTER_MS)


def test_quarter_of_an_hour_does_not_stand_for_minutes():
    """A queue whose consumer stopped six minutes ago counted as consumed."""
    weeks = chart(start_ms=0, step_ms=QUARTER_MS, received=[1, 1])
    history = History(chart(start_ms=2 * QUARTER_MS, received=[0, 0]), weeks)

    assert not history.has_been_positive("received", 5 * limits.MINUTE_MS)
