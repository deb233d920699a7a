"""Spark jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream_client.aio.resources import AsyncResource
from millstream_client.core.api.jobs.cancel_job import cancel_job
from millstream_client.core.api.jobs.get_job import get_job
from millstream_client.core.api.jobs.retry_job import retry_job

if TYPE_CHECKING:
    from millstream_client.core.models.job_detail import JobDetail
    from millstream_client.core.models.job_out import JobOut


class AsyncJob(AsyncResource):
    """A job, whether it exists or not. Raises MillstreamError."""

    async def status(self) -> JobDetail:
        """Return the progress."""
        return await self.transport.call(get_job(self.name))

    async def cancel(self) -> JobOut:
        """Cancel the job; completed work is kept."""
        return await self.transport.call(cancel_job(self.name))

    async def retry(self) -> JobOut:
        """Retry a failed job from where it stopped."""
        return await self.transport.call(retry_job(self.name))
