"""Scan jobs: each stream with views that should run has one open, which a worker runs."""

import logging
from collections.abc import Mapping
from typing import Any

from storage.domain.errors import JobRefused, MillstreamError
from storage.domain.jobs import JobKind, JobLease, JobState
from storage.domain.names import StreamName
from storage.jobs import Jobs
from storage.postgres.repositories.views import ViewRows

logger = logging.getLogger(__name__)

_ATTEMPTS_MAX = 1_000_000_000  # a scan is never given up


class ScanJobs:
    """The scan jobs of a deployment."""

    def __init__(self, rows: ViewRows, jobs: Jobs) -> None:
        self._rows = rows
        self._jobs = jobs

    async def ensure(self, stream: StreamName) -> None:
        """Submit the scan job of a stream, unless one is open; a maintenance task tries again."""
        try:
            await self._jobs.submit(
                stream.namespace,
                JobKind.VIEW_SCAN,
                stream.name,
                {"stream": stream.name},
                attempts_max=_ATTEMPTS_MAX,
                take_open=True,
            )
        except MillstreamError as error:
            facts = {"stream": str(stream), "reason": error.detail}
            logger.warning("view_scan_not_submitted", extra=facts)

    async def ensure_all(self) -> int:
        """Submit a scan job for each stream whose views have none; return their number."""
        streams = await self._rows.streams_without_scan()
        for stream in streams:
            await self.ensure(stream)
        return len(streams)

    async def cancel_waiting(self, stream: StreamName) -> None:
        """Cancel the scan job of a stream without views if it waits: a worker may never take it.

        One that runs ends by itself, or continues with a view that is put meanwhile.
        """
        try:
            if await self._rows.over(stream):
                return
            job = await self._jobs.open_of(stream.namespace, JobKind.VIEW_SCAN, stream.name)
            if job is not None and job.state is JobState.QUEUED:
                await self._jobs.cancel(job.job_id)
        except JobRefused:
            return  # it has ended
        except MillstreamError as error:
            facts = {"stream": str(stream), "reason": error.detail}
            logger.warning("view_scan_not_cancelled", extra=facts)

    async def end(self, claim: JobLease, progress: Mapping[str, Any]) -> None:
        """End the scan job of a stream without views; submit another if it has some by now.

        A view that is put or resumed while the job ends finds it open, and submits none. Raises LeaseLost.
        """
        await self._jobs.finish(claim, progress=progress)
        await self.ensure_all()
