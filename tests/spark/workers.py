"""Workers as processes, with short leases: `python -m tests.spark.workers toys …`."""

import asyncio
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from api.cli.up.signals import run_until_stopped
from api.observability.logging import configure_logs
from spark_worker.main import work
from spark_worker.settings import WorkerSettings
from storage.domain.limits import Limits
from storage.settings import StorageSettings
from tests.spark.shared_session import worker_settings

HANDLERS = {"toys": "tests.spark.toys.TOYS", "real": "spark_worker.main.HANDLERS"}
QUICK = Limits(
    job_lease_ms=3_000,
    job_orphaned_ms=1_000,
    job_heartbeat_ms=100,
    job_backoff_ms=50,
    job_poll_ms=50,
    job_idle_ms=1_500,
    job_wait_ms=300,
)
ON_SPARK = replace(QUICK, replay_small_records=0)
"""Limits with which no replay is small."""


@contextmanager
def worker_process(
    stores: StorageSettings | WorkerSettings,
    log: Path,
    handlers: str = "toys",
    limits: Limits = QUICK,
    **environment: str,
) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a worker for the length of the block, and kill it at the end."""
    settings = worker_settings(stores) if isinstance(stores, StorageSettings) else stores
    words = [handlers, settings.model_dump_json(), json.dumps(msgspec.to_builtins(limits))]
    with log.open("ab") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.spark.workers", *words],
            stderr=stderr,
            env={**os.environ, "TMPDIR": str(log.parent), **environment},
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def main() -> None:
    """Run a worker; argv: handlers, then its settings and limits as JSON."""
    configure_logs("info")
    module, name = HANDLERS[sys.argv[1]].rsplit(".", 1)
    settings = WorkerSettings.model_validate_json(sys.argv[2])
    limits = msgspec.convert(json.loads(sys.argv[3]), Limits)
    handlers = getattr(importlib.import_module(module), name)
    asyncio.run(run_until_stopped(work(settings, handlers=handlers, limits=limits)))


if __name__ == "__main__":
    main()
