"""How long the end of a chaos run waits."""

from tests.chaos.drain import STANDSTILL_S, Patience

GOES = [
    (0.0, -9),
    (STANDSTILL_S - 1, -8),
    (STANDSTILL_S + 1, -9),  # one came back: that is no way forward
    (2 * STANDSTILL_S - 2, -8),
    (2 * STANDSTILL_S - 1, -8),
]


def test_what_gets_further_is_awaited_and_what_stands_still_is_given_up():
    times = iter([0.0, *(at for at, _ in GOES)])
    patience = Patience(lambda: next(times))

    assert [patience.lasts(progress) for _, progress in GOES] == [True, True, True, True, False]
