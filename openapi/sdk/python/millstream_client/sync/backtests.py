# Generated from aio/backtests.py by `make sdk`; changes are lost.
"""Back-tests that run as jobs: of matches, and of views."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from millstream_client.core.api.jobs.cancel_job import cancel_job
from millstream_client.core.api.jobs.retry_job import retry_job
from millstream_client.core.api.topics.get_backtest_job import get_backtest_job
from millstream_client.core.api.views.get_view_backtest import get_view_backtest
from millstream_client.core.models.back_test_job_out import BackTestJobOut
from millstream_client.core.models.view_back_test_out import ViewBackTestOut

if TYPE_CHECKING:
    from millstream_client.calls import Call
    from millstream_client.core.models.job_out import JobOut
    from millstream_client.retries import Retries
    from millstream_client.sync.transport import Transport

OVER = frozenset({"done", "failed", "cancelled"})
LOOK_S = 0.5


Status = TypeVar("Status", BackTestJobOut, ViewBackTestOut)


class BackTest(Generic[Status]):
    """A back-test that runs as a job, whether it exists or not. Raises MillstreamError.

    `of` names what it is a back-test of.
    """

    _get: Callable[[str, str], Call[Status]]

    def __init__(self, transport: Transport, of: str, id: str) -> None:
        self.transport = transport
        self.of = of
        self.id = id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.of} {self.id}>"

    def with_options(
        self, *, timeout_seconds: float | None = None, retries: Retries | None = None
    ) -> Self:
        """Return the same job whose calls have another time limit or other retries."""
        options = self.transport.with_options(timeout_seconds, retries, None)
        return type(self)(options, self.of, self.id)

    def status(self) -> Status:
        """Return the state, and the result so far."""
        return self.transport.call(self._get(self.of, self.id))

    def watch(self, every_seconds: float = LOOK_S) -> Iterator[Status]:
        """Yield the status repeatedly until the job has ended."""
        while True:
            status = self.status()
            yield status
            if str(status.state) in OVER:
                return
            self.transport.sleep(every_seconds)

    def cancel(self) -> JobOut:
        """Cancel the job; the result so far is kept."""
        return self.transport.call(cancel_job(self.id))

    def retry(self) -> JobOut:
        """Retry a failed job from where it stopped."""
        return self.transport.call(retry_job(self.id))


class BackTestJob(BackTest[BackTestJobOut]):
    """A match, evaluated on all messages of a topic. Raises MillstreamError."""

    _get = staticmethod(get_backtest_job)

    @property
    def topic(self) -> str:
        """Name of the topic."""
        return self.of


class ViewBackTest(BackTest[ViewBackTestOut]):
    """A configuration, evaluated over the records of a view. Raises MillstreamError."""

    _get = staticmethod(get_view_backtest)
