"""Progress of long operations: a bar in a terminal, otherwise an occasional line.

The bar has the rate and the remaining time.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from api.cli.shell.terminal import Terminal
from api.config.durations import show_duration

EVERY_S = 5.0


class ProgressDisplay(Protocol):
    """Receiver of progress: the amount done, and the total if known."""

    def to(self, done: int, total: int | None = None) -> None: ...


@contextmanager
def progress(cli: Terminal, what: str) -> Iterator[ProgressDisplay]:
    """Show the progress while the block runs."""
    if cli.out.quiet:
        yield _Silent()
    elif cli.shows_progress:
        with _bar(what) as bar:
            yield bar
    else:
        yield ProgressLines(what, cli.print_notice)


WAITING_FOR = {
    "worker": "waiting for a worker, and none is running: start one with `millstream worker`",
    "capacity": "waiting for a free place: the workers run as many jobs as they may",
    "readers": "waiting for the target's readers, whose backlog is above `lag_records_max`",
    "target": "waiting for the target, which accepts nothing now",
    "pace": "waiting until the next record is due",
    "executors": "waiting for executors of the Spark cluster; the job's failure says why",
    "spark": "waiting for Spark, which takes up to a minute or two to start; later jobs start at once",
}
"""Notice for each reason why a job waits."""


class JobNotices:
    """Reports why a job waits, and failures of attempts that are retried, once each."""

    def __init__(self, print_line: Callable[[str], None]) -> None:
        self._print_line = print_line
        self._last = ("", "")

    def report(self, failure: str, waiting_for: str | None) -> None:
        """Report a change of the last attempt's failure, "" for none, and of the reason to wait."""
        last_failure, last_reason = self._last
        if failure and failure != last_failure:
            self._print_line(f"an attempt failed and will be retried: {failure}")
        if waiting_for and waiting_for != last_reason:
            self._print_line(WAITING_FOR[waiting_for])
        self._last = (failure, waiting_for or "")


class _Silent:
    def to(self, done: int, total: int | None = None) -> None:
        """Do nothing."""


class ProgressLines:
    """Prints a line every few seconds, if anything has happened since the last."""

    def __init__(
        self,
        what: str,
        print_line: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what = what
        self._print_line = print_line
        self._now = now
        self._began = self._reported_s = now()
        self._first: int | None = None

    def to(self, done: int, total: int | None = None) -> None:
        now = self._now()
        if self._first is None:
            self._first = done
        if now - self._reported_s < EVERY_S:
            return
        self._reported_s = now
        rate = (done - self._first) / (now - self._began)
        self._print_line(sentence(self._what, done, total, rate))


def sentence(what: str, done: int, total: int | None, rate: float) -> str:
    """Format a line such as: replayed 1200 of 5000 (24 %), 400/s, 10s left."""
    of = f" of {total} ({100 * done // total} %)" if total else ""
    left = (
        f", {show_duration(round((total - done) / rate))} left"
        if total and rate > 0 and total > done
        else ""
    )
    return f"{what} {done}{of}, {rate:.0f}/s{left}"


@contextmanager
def _bar(what: str) -> Iterator[ProgressDisplay]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar
    from rich.text import Text

    class Rate(ProgressColumn):
        """Messages per second."""

        def render(self, task: Task) -> Text:
            return Text("" if task.speed is None else f"{task.speed:.0f}/s")

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), Rate(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        class BarDisplay:
            def to(self, done: int, total: int | None = None) -> None:
                bar.update(task, completed=done, total=total)

        yield BarDisplay()
