"""Attempts at jobs: wait until one has failed."""

import asyncio
import subprocess

from storage.bootstrap import Storage


async def has_failed(storage: Storage, worker: "subprocess.Popen[bytes]", job_id: str) -> None:
    """Wait until an attempt has failed, or its worker has ended."""
    for _ in range(600):
        job = await storage.jobs.get(job_id)
        if job.failures or worker.poll() is not None:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("nothing has failed")
