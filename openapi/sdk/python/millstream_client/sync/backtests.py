# Generated from aio/backtests.py by `make sdk`; changes are lost.
"""Back-tests that run as jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

from millstream_client.core.api.jobs.cancel_job import cancel_job
from millstream_client.core.api.jobs.retry_job import retry_job
from millstream_client.core.api.topics.get_backtest_job import get_backtest_job

if TYPE_CHECKING:
    from millstream_client.core.models.back_test_job_out import BackTestJobOut
    from millstream_client.core.models.job_out import JobOut
    from millstream_client.retries import Retries
    from millstream_client.sync.transport import Transport

OVER = frozenset({"done", "failed", "cancelled"})
LOOK_S = 0.5


class BackTestJob:
    """A back-test that runs as a job, whether it exists or not. Raises MillstreamError."""

    def __init__(self, transport: Transport, topic: str, id: str) -> None:
        self.transport = transport
        self.topic = topic
        self.id = id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.topic} {self.id}>"

    def with_options(
        self, *, timeout_seconds: float | None = None, retries: Retries | None = None
    ) -> Self:
        """Return the same job whose calls have another time limit or other retries."""
        options = self.transport.with_options(timeout_seconds, retries, None)
        return type(self)(options, self.topic, self.id)

    def status(self) -> BackTestJobOut:
        """Return the state, and the result so far."""
        return self.transport.call(get_backtest_job(self.topic, self.id))

    def watch(self, every_seconds: float = LOOK_S) -> Iterator[BackTestJobOut]:
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
