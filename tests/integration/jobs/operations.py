"""Short forms of operations on jobs."""

from storage.domain.jobs import JobKind

KINDS = [JobKind.ARCHIVE, JobKind.REPLAY]


def submit(jobs, subject="logs", kind=JobKind.ARCHIVE, **options):
    return jobs.submit("default", kind, subject, {"n": 1}, **options)


async def claim(jobs, worker="w1"):
    """Claim a job; fails if none is due."""
    job = await jobs.claim(worker, KINDS)
    assert job is not None
    return job
