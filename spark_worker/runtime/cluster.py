"""Executors of a Spark cluster: a check before the first job, and detection of their loss.

    session opens ──▶ probe: a task per slot ──▶ versions and archive as here ──▶ jobs
                        │ no executor, or another Python, package or archive
                        └──▶ ExecutorsUnavailable: jobs wait, with the reason

The probe runs what a job runs: the same Python, daemon and packages.
"""

import platform
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from threading import Thread
from typing import TYPE_CHECKING, Any

import msgspec

from spark_worker.settings import TaskSettings, WorkerSettings
from storage.domain import limits
from storage.domain.errors import MillstreamError
from storage.parquet.object_store import open_root

if TYPE_CHECKING:
    from pyspark import SparkContext

_PACKAGES = ("millstream", "pyarrow")
_PROBE_FOLDER = "_probe"
_POLL_S = 0.2
_TRACEBACK = "Traceback (most recent call last):"
_TASK_FAILURE = re.compile(r"most recent failure: (?:Lost task .+? executor \w+\): )?(.+)")
_EXCEPTION = re.compile(r"[\w.$]+(?:Exception|Error)\b")


class ExecutorsUnavailable(Exception):
    """The cluster runs no executor that can do the worker's jobs; the text says why."""


class ExecutorProbe(msgspec.Struct, frozen=True):
    """Facts about one executor: versions by name, and why it cannot use the archive, or ''."""

    host: str
    versions: dict[str, str]
    archive_failure: str = ""


class ExecutorAbsence:
    """Watch of the time for which a cluster has had no executor, which may be `wait_ms`."""

    def __init__(self, wait_ms: int) -> None:
        self._wait_s = wait_ms / limits.SECOND_MS
        self._since = time.monotonic()

    def lost_reason(self, context: "SparkContext") -> str | None:
        """Return why the application's executors are lost; None while it may have some."""
        try:
            spark = context._jsc.sc()
            if spark.isStopped():
                return f"The cluster ended the application {context.applicationId}."
            executors = spark.getExecutorMemoryStatus().size() - 1  # without the driver
        except Exception:  # py4j's, or the socket's
            return "The driver's JVM ended."
        if executors:
            self._since = time.monotonic()
        if time.monotonic() - self._since < self._wait_s:
            return None
        return (
            f"The cluster has had no executor for {self._wait_s:g} s for the application"
            f" {context.applicationId}: it may lack free cores or memory, or executors may fail to start or to reach the driver."
        )


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that a task needs, of this process."""
    import pyspark  # of the cluster's own distribution on executors

    numbers = {"python": platform.python_version(), "pyspark": pyspark.__version__}
    for name in _PACKAGES:
        try:
            numbers[name] = version(name)
        except PackageNotFoundError:
            numbers[name] = "none"
    return numbers


# Driver


def check_executors(context: "SparkContext", settings: WorkerSettings) -> None:
    """Raise ExecutorsUnavailable unless executors have what a job needs."""
    archive = _ArchiveProbe(settings)
    tasks = min(max(context.defaultParallelism, 1), limits.SPARK_PROBE_TASKS_MAX)
    task = partial(_probe_in_task, TaskSettings(settings.storage, redis=False, postgres=False))
    try:
        archive.write()
        rows = context.parallelize([archive.nonce] * tasks, tasks).mapPartitions(task)
        answers = _collected(context, rows, ExecutorAbsence(settings.executors_wait_ms))
        probes = [msgspec.json.decode(answer, type=ExecutorProbe) for answer in answers]
        problems = [*_differences(probes), *archive.problems(probes)]
    finally:
        archive.remove()
    if problems:
        raise ExecutorsUnavailable("; ".join(dict.fromkeys(problems)))


def _collected(context: "SparkContext", rows: Any, absence: ExecutorAbsence) -> Sequence[bytes]:
    """Collect, while there are executors."""
    done: Future[Sequence[bytes]] = Future()

    def collect() -> None:
        try:
            done.set_result(rows.collect())
        except BaseException as error:
            done.set_exception(error)

    Thread(target=collect, name="spark-probe", daemon=True).start()
    while not done.done():
        if (reason := absence.lost_reason(context)) is not None:
            raise ExecutorsUnavailable(reason)
        time.sleep(_POLL_S)
    if (error := done.exception()) is not None:
        raise ExecutorsUnavailable(f"A task failed: {cause_of(error)}") from error
    return done.result()


def _differences(probes: Iterable[ExecutorProbe]) -> Iterator[str]:
    """Yield what differs from this process; a patch level of Python may."""
    here = versions()
    for probe in probes:
        for name, own in here.items():
            other = probe.versions.get(name, "none")
            if _comparable(name, other) != _comparable(name, own):
                yield f"{name} is {other} on executor {probe.host}, and {own} here"


def _comparable(name: str, number: str) -> str:
    return number.rpartition(".")[0] if name == "python" else number


class _ArchiveProbe:
    """A file in the archive from the driver for executors, and one from each of them."""

    def __init__(self, settings: WorkerSettings) -> None:
        url = settings.storage.archive_url
        self._root = None if url is None else open_root(url)
        self.nonce = secrets.token_hex(8) if self._root else ""

    def write(self) -> None:
        if self._root is not None:
            try:
                with self._root.writing(_probe_path(self.nonce, "driver")) as sink:
                    sink.write(self.nonce.encode())
            except MillstreamError as error:
                raise ExecutorsUnavailable(
                    f"The archive is unavailable here: {error.detail}"
                ) from None

    def problems(self, probes: Iterable[ExecutorProbe]) -> Iterator[str]:
        for probe in probes:
            if probe.archive_failure:
                yield f"executor {probe.host} does not share the archive: {probe.archive_failure}"
            elif self._root and self._root.size(_probe_path(self.nonce, probe.host)) is None:
                yield f"the archive that executor {probe.host} writes to is not the one here"

    def remove(self) -> None:
        if self._root is not None:
            try:
                for file in list(self._root.files(f"{_PROBE_FOLDER}/{self.nonce}")):
                    self._root.delete(file.path)
            except MillstreamError:
                pass  # it is collected later, as any file that is not referenced


def _probe_path(nonce: str, name: str) -> str:
    return f"{_PROBE_FOLDER}/{nonce}/{name}"


# Executor


def _probe_in_task(settings: TaskSettings, nonces: Iterable[str]) -> list[bytes]:
    """Return what this executor has, as JSON."""
    host = platform.node()
    return [
        msgspec.json.encode(
            ExecutorProbe(host, versions(), _archive_failure(settings, nonce, host))
        )
        for nonce in nonces
    ]


def _archive_failure(settings: TaskSettings, nonce: str, host: str) -> str:
    if not nonce:
        return ""
    root, written = open_root(settings.storage().archive_url or ""), _probe_path(nonce, "driver")
    try:
        if root.size(written) != len(nonce):
            return "a file that the worker has written is not there"
        with root.writing(_probe_path(nonce, host)) as sink:
            sink.write(nonce.encode())
    except MillstreamError as error:
        return error.detail
    return ""


# Failures


def cause_of(error: BaseException) -> str:
    """Return the exception that caused a failure of Spark, as `class: text (notes)`.

    Spark's own text has the stack of the driver, of the executor and of the Python process, in this order.
    """
    text = str(error)
    before, separator, trace = text.rpartition(_TRACEBACK)
    if separator:
        line = before.rpartition("\n")[2]
        indent = "" if line.strip() else line
        last = list(_after_frames(indent, trace.splitlines()[1:]))
        if last:
            return f"{last[0]} ({', '.join(last[1:])})" if last[1:] else last[0]
    if task := _TASK_FAILURE.search(text):
        return task[1].strip()
    lines = [line.strip().lstrip(": ") for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if _EXCEPTION.match(line)]
    return causes[0] if causes else f"{type(error).__name__}: {lines[0] if lines else ''}"


def _after_frames(indent: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a traceback after its frames, which are indented further than it is."""
    for line in lines:
        if not line.startswith(indent) or not line.strip() or line.startswith("\t"):
            return
        if not line.startswith(f"{indent} "):
            yield line.strip()
