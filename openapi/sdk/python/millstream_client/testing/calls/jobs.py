"""Operations of jobs, of which there are back-tests alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream_client.testing.calls.registry import on
from millstream_client.testing.codec import Request, Result

if TYPE_CHECKING:
    from millstream_client.testing.service import MemoryService


@on("GET", "jobs/{job}")
def _get(service: MemoryService, request: Request, job: str) -> Result:
    return Result({**service.back_tests.get(job).as_job(), "parts": []})


@on("POST", "jobs/{job}/cancel")
def _cancel(service: MemoryService, request: Request, job: str) -> Result:
    return Result(service.back_tests.cancel(job).as_job())


@on("POST", "jobs/{job}/retry")
def _retry(service: MemoryService, request: Request, job: str) -> Result:
    return Result(service.back_tests.retry(job).as_job())
