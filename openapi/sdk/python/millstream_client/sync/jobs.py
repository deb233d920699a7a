# Generated from aio/jobs.py by `make sdk`; changes are lost.
"""Jobs: the long work that a worker does."""

from millstream_client.core.api.jobs.cancel_job import cancel_job
from millstream_client.core.api.jobs.get_job import get_job
from millstream_client.core.api.jobs.retry_job import retry_job
from millstream_client.core.models.job_detail import JobDetail
from millstream_client.core.models.job_out import JobOut
from millstream_client.sync.transport import Transport


class Job:
    """A job of the service, there or not. Raises MillstreamError."""

    def __init__(self, transport: Transport, name: str) -> None:
        self.transport = transport
        self.name = name

    def status(self) -> JobDetail:
        """How far it is."""
        return self.transport.call(get_job(self.name))

    def cancel(self) -> JobOut:
        """End it; what it has done stays."""
        return self.transport.call(cancel_job(self.name))

    def retry(self) -> JobOut:
        """Begin a failed one again, where it left off."""
        return self.transport.call(retry_job(self.name))
