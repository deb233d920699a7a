"""Jobs: the long work that a worker does."""

from millstream_client.aio.transport import AsyncTransport
from millstream_client.core.api.jobs.cancel_job import cancel_job
from millstream_client.core.api.jobs.get_job import get_job
from millstream_client.core.api.jobs.retry_job import retry_job
from millstream_client.core.models.job_detail import JobDetail
from millstream_client.core.models.job_out import JobOut


class AsyncJob:
    """A job of the service, there or not. Raises MillstreamError."""

    def __init__(self, transport: AsyncTransport, name: str) -> None:
        self.transport = transport
        self.name = name

    async def status(self) -> JobDetail:
        """How far it is."""
        return await self.transport.call(get_job(self.name))

    async def cancel(self) -> JobOut:
        """End it; what it has done stays."""
        return await self.transport.call(cancel_job(self.name))

    async def retry(self) -> JobOut:
        """Begin a failed one again, where it left off."""
        return await self.transport.call(retry_job(self.name))
