"""Tables and meters of the comparison; measurements are never asserted."""

import subprocess
import sys
from dataclasses import replace

from tests.bench.compare.__main__ import _warm_up
from tests.bench.compare.clicks import GRACE_MS, Click, Total, difference, generate, totals
from tests.bench.compare.contenders import CONTENDERS, JVMS
from tests.bench.compare.loads import FILLED, UNDELIVERED, Backlog
from tests.bench.compare.processor import processor_time
from tests.bench.compare.results import (
    Contender,
    Did,
    Durability,
    Standing,
    Subject,
    as_json,
    described,
    from_json,
    table,
)
from tests.bench.compare.usage import usage

THEM = Contender("them", "theirs", Durability.MEMORY, "a restart loses everything.")
SPUN_S = 0.3
ROUNDS = [Did(10, 1, 4, 70), Did(30, 3, 6, 90), Did(2_345.6, 2, 5, 80)]


def test_standings_show_median_round_and_leave_gaps():
    line = table([Standing(THEM, {"send": ROUNDS})]).splitlines()[-1]

    assert line == "| them | in memory | **30**/s<br>2 / 5 ms<br>80 µs |  |  |  |"


def test_every_contender_has_a_line_on_what_is_left_out():
    text = described([Standing(THEM, {}, "no Java here")], ["**Others**: no package."])

    assert "* **them** (theirs): a restart loses everything." in text
    assert "* **them**, not measured: no Java here" in text
    assert "* **Others**: no package." in text
    assert all(contender.leaves_out for contender, _ in CONTENDERS.values())
    assert CONTENDERS.keys() > JVMS


def test_topics_have_a_table_of_their_own():
    topic = replace(THEM, subject=Subject.TOPICS)

    line = table([Standing(topic, {"fan-out": ROUNDS, "send": ROUNDS})]).splitlines()[-1]

    assert line == "| them | in memory |  |  | **30**/s<br>2 / 5 ms<br>80 µs |"
    assert from_json(as_json(Standing(topic, {}))) == Standing(topic, {})


def test_round_of_a_view_shows_its_duration_and_memory():
    view = replace(THEM, subject=Subject.VIEWS)
    backlog = Did(100_000, 2_000, 2_000, 12, 700)

    line = table([Standing(view, {"cold": [backlog]})]).splitlines()[-1]

    assert line == "| them | in memory | **100,000**/s<br>2 s<br>12 µs<br>700 MB |  |  |"


def test_clicks_are_the_same_in_each_run_and_within_grace():
    clicks = [*generate(0, 1_000, 10**12, 10)]
    newest_ms = 0

    for click in clicks:
        assert click.time_ms > newest_ms - GRACE_MS
        newest_ms = max(newest_ms, click.time_ms)

    assert clicks == [*generate(0, 1_000, 10**12, 10)]
    assert [click.time_ms for click in clicks] != sorted(click.time_ms for click in clicks)


def test_difference_names_missing_wrong_and_excess_rows():
    click = Click(0, "/", 7, 19_999, "")
    rows = totals([click, click._replace(number=1, ms=3)])

    assert rows == {("/", 10_000): Total(2, 10, 1)}
    assert not difference(rows, dict(rows))
    excess = {("/", 10_000): Total(1, 7, 0), ("/", 0): Total(1, 1, 1)}
    assert difference(excess, rows) == "of 1 rows 0 are missing, 1 wrong, and 1 too many"


def test_usage_leaves_clients_out():
    command = [sys.executable, "-S", "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
        with usage([]) as used, usage([child.pid]) as without:
            pass
        child.communicate(b"\n")

    assert used.peak_mb > without.peak_mb


def test_standing_round_trips_through_json():
    standing = Standing(THEM, {"send": ROUNDS}, "one failed")

    assert from_json(as_json(standing)) == standing


def test_processor_time_is_that_of_ended_and_running_children():
    spin = f"import time\nwhile time.process_time() < {SPUN_S}: pass\nprint(flush=True)\ninput()"
    command = [sys.executable, "-S", "-c", spin]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        with processor_time() as spent:
            assert running.stdout is not None
            running.stdout.readline()
            subprocess.run(command, input=b"\n", stdout=subprocess.DEVNULL, check=True)
        running.communicate(b"\n")

    assert 1.7 * SPUN_S < spent.seconds < 3 * SPUN_S


def test_backlog_follows_the_last_rate():
    backlog = Backlog()
    assert backlog.wanted(2) == 2 * FILLED + UNDELIVERED

    backlog.learn(1_000)

    assert backlog.wanted(2) == 2_600 + UNDELIVERED


def test_warm_up_ends_when_two_rounds_are_alike():
    rates = iter([100.0, 150.0, 200.0, 204.0, 999.0])

    _warm_up(lambda _: Did(next(rates), 0, 0, 0), 1, 8)

    assert next(rates) == 999.0


def test_warm_up_is_bounded():
    rates = iter([100.0, 200.0, 400.0, 800.0])

    _warm_up(lambda _: Did(next(rates), 0, 0, 0), 1, 3)

    assert next(rates) == 800.0
