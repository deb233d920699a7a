"""The drain of a chaos run waits for progress."""

from tests.chaos.drain import STANDSTILL_S, Patience

GOES = [
    (0.0, -9),
    (STANDSTILL_S - 1, -8),
    (STANDSTILL_S + 1, -9),  # one message returned: no progress
    (2 * STANDSTILL_S - 2, -8),
    (2 * STANDSTILL_S - 1, -8),
]


def test_drain_waits_for_progress_and_gives_up_at_standstill():
    times = iter([0.0, *(at for at, _ in GOES)])
    patience = Patience(lambda: next(times))

    assert [patience.lasts(progress) for _, progress in GOES] == [True, True, True, True, False]
