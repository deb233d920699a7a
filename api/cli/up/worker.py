"""Command `millstream worker`: run archive, replay and other Spark jobs until stopped."""

import asyncio
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any

from api.cli.errors import CliError, ExitCode
from api.cli.up.archive_mode import check_archive_of_cluster, spark_conf
from api.cli.up.signals import run_until_stopped
from api.config.settings import Settings
from api.observability.background_metrics import count_primary_change
from api.observability.logging import configure_logs
from api.observability.metric_definitions import (
    ARCHIVE_BYTES,
    ARCHIVE_FAILURES,
    ARCHIVE_SEGMENTS,
    BACK_TEST_MESSAGES,
    JOB_SECONDS,
    QUERY_RECORDS,
    REPLAY_RECORDS,
    VIEW_BACK_TEST_RECORDS,
    VIEW_BATCH_SECONDS,
    VIEW_RECORDS,
    VIEW_ROWS_CHANGED,
    VIEW_SINK_MESSAGES,
)
from spark_worker.main import with_observers, work
from spark_worker.runtime.requirements import missing_requirement
from spark_worker.settings import WorkerSettings
from storage.domain.errors import StorageUnavailable
from storage.domain.jobs import JobKind, JobState
from storage.domain.limits import SECOND_MS
from storage.domain.names import ViewName
from storage.domain.views.progress import ViewBatch


def run(settings: Settings) -> None:
    """Work until SIGINT or SIGTERM.

    Raises CliError where Spark can neither run nor is awaited.
    """
    configure_logs(settings.log_level)
    if settings.spark != "wait" and (reason := missing_requirement()) is not None:
        raise CliError(reason, ExitCode.UNAVAILABLE)
    try:
        asyncio.run(run_until_stopped(_work(settings)))
    except StorageUnavailable as error:
        raise CliError(error.detail, ExitCode.UNAVAILABLE) from None


def _work(settings: Settings) -> Coroutine[Any, Any, None]:
    return work(
        _worker_settings(settings),
        handlers=with_observers(_count_view_batch, _count_sink_messages),
        on_end=_count,
        on_primary_change=count_primary_change,
    )


def _worker_settings(settings: Settings) -> WorkerSettings:
    """Return the worker's settings.

    With `millstream up` on the same machine its files are in the deployment's directory.
    """
    check_archive_of_cluster(settings, settings.archive_url)
    run_directory = settings.data.resolve() / "run"
    beside_up = run_directory.is_dir()
    return WorkerSettings(
        storage=settings.storage(),
        spark_master=settings.spark_master,
        spark_memory_mb=settings.spark_memory_mb,
        spark_conf=spark_conf(settings),
        spark_environment=settings.spark_environment,
        scratch=run_directory / "spark" if beside_up else None,
        log=_log(settings.data.resolve()) if beside_up else None,
        awaits_spark=settings.spark == "wait",
    )


def _log(data: Path) -> Path:
    return data / "logs" / "spark.log"


def _count(kind: JobKind, state: JobState, seconds: float, gained: Mapping[str, int]) -> None:
    JOB_SECONDS.labels(kind.value, state.value).observe(seconds)
    match kind:
        case JobKind.ARCHIVE:
            ARCHIVE_SEGMENTS.inc(gained.get("files", 0))
            ARCHIVE_BYTES.inc(gained.get("file_bytes", 0))
            if state not in _SUCCESSFUL_STATES:
                ARCHIVE_FAILURES.inc()
        case JobKind.REPLAY:
            REPLAY_RECORDS.inc(gained.get("sent", 0))
        case JobKind.BACK_TEST:
            BACK_TEST_MESSAGES.inc(gained.get("evaluated", 0))
        case JobKind.VIEW_BACK_TEST:
            VIEW_BACK_TEST_RECORDS.inc(gained.get("records", 0))
        case JobKind.QUERY:
            QUERY_RECORDS.inc(gained.get("records", 0))
        case _:
            pass


def _count_view_batch(view: ViewName, batch: ViewBatch) -> None:
    counts = batch.counts
    for outcome, records in (("all", counts.records), ("late", counts.late), ("bad", counts.bad)):
        VIEW_RECORDS.labels(view.namespace, outcome).inc(records)
    VIEW_ROWS_CHANGED.labels(view.namespace).inc(len(batch.changes))
    VIEW_BATCH_SECONDS.labels(view.namespace).observe(batch.milliseconds / SECOND_MS)


def _count_sink_messages(view: ViewName, messages: int) -> None:
    VIEW_SINK_MESSAGES.labels(view.namespace).inc(messages)


_SUCCESSFUL_STATES = (JobState.DONE, JobState.PAUSED, JobState.CANCELLED)
