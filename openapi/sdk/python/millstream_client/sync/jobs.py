# Generated from aio/jobs.py by `make sdk`; changes are lost.
"""Spark jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream_client.core.api.jobs.cancel_job import cancel_job
from millstream_client.core.api.jobs.get_job import get_job
from millstream_client.core.api.jobs.retry_job import retry_job

if TYPE_CHECKING:
    from millstream_client.core.models.job_detail import JobDetail
    from millstream_client.core.models.job_out import JobOut
    from millstream_client.sync.transport import Transport


class Job:
    """A job, whether it exists or not. Raises MillstreamError."""

    def __init__(self, transport: Transport, name: str) -> None:
        self.transport = transport
        self.name = name

    def status(self) -> JobDetail:
        """Return the progress."""
        return self.transport.call(get_job(self.name))

    def cancel(self) -> JobOut:
        """Cancel the job; completed work is kept."""
        return self.transport.call(cancel_job(self.name))

    def retry(self) -> JobOut:
        """Retry a failed job from where it stopped."""
        return self.transport.call(retry_job(self.name))
