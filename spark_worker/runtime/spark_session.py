"""Spark session: a JVM, PySpark's view of it, and a folder for its temporary files."""

import asyncio
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from spark_worker.runtime import class_archive
from spark_worker.runtime.cluster import (
    ExecutorAbsence,
    ExecutorsUnavailable,
    cause_of,
    check_executors,
)
from spark_worker.runtime.imports import IMPORTS
from spark_worker.runtime.java import find_java
from spark_worker.runtime.jvm import END_S, Jvm, Launch, SparkFailed, spark_command
from spark_worker.runtime.spark_options import options, python_of_executors, write_options
from spark_worker.settings import WorkerSettings, gateway_environment

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_FOLDER = "millstream-spark-"  # then the process id, and a random suffix


def set_call_site(spark: "SparkSession", name: str) -> None:
    """Name the stages of this thread; else Spark takes a stack trace for each RDD."""
    for form in ("callSite.short", "callSite.long"):
        spark.sparkContext.setLocalProperty(form, name)


class Session:
    """An open session; at most one in a process, since PySpark supports only one."""

    def __init__(
        self, spark: "SparkSession", jvm: Jvm, folder: Path, settings: WorkerSettings
    ) -> None:
        self.spark = spark
        self.has_cluster = settings.has_cluster
        self._settings = settings
        self._jvm = jvm
        self._folder = folder
        self._absence = ExecutorAbsence(settings.executors_wait_ms)
        self._application = spark.sparkContext.applicationId if self.has_cluster else ""

    @property
    def alive(self) -> bool:
        """Return whether the JVM runs."""
        return self._jvm.alive

    def answers(self) -> bool:
        """Return whether the JVM takes calls: one that was killed seems to run a moment longer."""
        if not self.alive:
            return False
        try:
            self.spark.sparkContext._jsc.sc().isStopped()
        except Exception:  # py4j's, or the socket's
            return False
        return True

    @property
    def jvm_pid(self) -> int:
        return self._jvm.pid

    @property
    def log(self) -> str:
        """Text about the session's log, with the application's id on a cluster."""
        application = f"application {self._application}" if self.has_cluster else ""
        log = f"log {self._jvm.log}" if self._jvm.log else ""
        return ", ".join(filter(None, (application, log)))

    def lost_reason(self) -> str | None:
        """Return why the cluster has no executors for the session; None while it may have some."""
        return self._absence.lost_reason(self.spark.sparkContext)

    def cancel(self, group: str) -> None:
        """Cancel the Spark jobs of a group, those that run and those still to come."""
        with suppress(Exception):  # a JVM that does not answer runs no jobs
            self.spark.sparkContext._jsc.sc().cancelJobGroupAndFutureJobs(group)

    def close(self, *, within_s: float = END_S) -> None:
        """End the JVM, and remove it from PySpark's state."""
        self._jvm.end(within_s)
        _clear_pyspark_state()
        shutil.rmtree(self._folder, ignore_errors=True)


async def open_session(
    settings: WorkerSettings, class_options: Sequence[str] | None = None
) -> Session:
    """Start Spark, which takes some seconds.

    `class_options`: those of the JVM instead of the ones that load the class archive. To be called from the thread that
    stays. Raises JavaMissing, SparkFailed; with a cluster ExecutorsUnavailable.
    """
    if class_options is None:
        class_options = class_archive.load_options()
    folder = await asyncio.to_thread(_new_folder, settings.scratch)
    try:
        launch = await asyncio.to_thread(_launch, settings, folder, class_options)
        jvm = Jvm(launch)  # here, not in a thread that may end: see its docstring
        try:
            python = python_of_executors(settings, sys.executable)
            spark = await asyncio.to_thread(_connect, jvm, python)
            if settings.has_cluster:
                await asyncio.to_thread(check_executors, spark.sparkContext, settings)
        except BaseException as error:
            jvm.kill()
            if isinstance(error, SparkFailed) and settings.has_cluster:
                raise ExecutorsUnavailable(str(error)) from error
            raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Session(spark, jvm, folder, settings)


def _new_folder(scratch: Path | None) -> Path:
    """Create the session's folder.

    A process that is killed leaves it behind: see `sweep_scratch`.
    """
    parent = _parent(scratch)
    parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-", dir=parent)).resolve()


def _parent(scratch: Path | None) -> Path:
    """Return the parent of sessions' folders.

    Spark takes a path with a comma for two: then the directory for temporary files.
    """
    if scratch is None or "," in str(scratch.resolve()):
        return Path(tempfile.gettempdir())
    return scratch


def sweep_scratch(scratch: Path | None) -> None:
    """Remove the folders left by processes that have ended."""
    for left in _parent(scratch).glob(f"{_FOLDER}*-*"):
        pid = left.name.removeprefix(_FOLDER).split("-", 1)[0]
        if pid.isdecimal() and not _runs(int(pid)):
            shutil.rmtree(left, ignore_errors=True)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _launch(settings: WorkerSettings, folder: Path, class_options: Sequence[str]) -> Launch:
    java, spark_home = find_java(), _spark_home()
    environment = settings.environment_of_spark(java.home, spark_home)
    options_file = folder / "spark.conf"
    write_options(options_file, options(settings, folder, class_options))
    command = spark_command(java, spark_home, options_file, environment)
    if not settings.has_cluster:
        # With it, Python processes load PySpark from a zip, and compile each module at every start.
        del environment["SPARK_HOME"]
    gateway_file = folder / "gateway"
    environment["_PYSPARK_DRIVER_CONN_INFO_PATH"] = str(gateway_file)
    return Launch(command, environment, gateway_file, settings.log)


def _spark_home() -> Path:
    module_spec = find_spec("pyspark")
    if module_spec is None or module_spec.origin is None:
        raise SparkFailed(
            "PySpark is not installed: pip install '.[spark]' in a clone of Millstream."
        )
    return Path(module_spec.origin).parent


def _connect(jvm: Jvm, python: str) -> "SparkSession":
    with IMPORTS:
        from pyspark import SparkContext
        from pyspark.java_gateway import launch_gateway
        from pyspark.sql import SparkSession

    quieten_py4j()
    port, secret = jvm.gateway()
    _clear_pyspark_state()
    try:
        with gateway_environment(port, secret):
            SparkContext._ensure_initialized(gateway=launch_gateway())  # type: ignore[no-untyped-call]
        spark = SparkSession.builder.getOrCreate()
        spark.sparkContext.pythonExec = python  # not the first on PATH
        _quieten(spark.sparkContext)
        return spark
    except Exception as error:
        _clear_pyspark_state()
        raise SparkFailed(f"Spark did not start: {cause_of(error)}") from error


def quieten_py4j() -> None:
    """Silence py4j, which reports an ended JVM for every thread that talks to it.

    Some of that goes to the root logger. The worker reports the end itself, once.
    """
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_py4js)


def _is_not_py4js(record: logging.LogRecord) -> bool:
    return record.module not in ("java_gateway", "clientserver")


def _quieten(context: "SparkContext") -> None:
    """Silence a PySpark server that prints its stack when the JVM ends.

    The worker reports that end itself.
    """

    def ignore_error(*_: object) -> None:
        return None

    context._accumulatorServer.handle_error = ignore_error  # type: ignore[method-assign, assignment]


def _clear_pyspark_state() -> None:
    """Clear PySpark's one JVM of the process, so that the next session is a new one."""
    with IMPORTS:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession
        from pyspark.sql.context import SQLContext

    context, gateway = SparkContext._active_spark_context, SparkContext._gateway
    if context is not None:
        context._jsc = None
        with suppress(Exception):
            context.stop()
    SparkContext._active_spark_context = None
    if gateway is not None:
        with suppress(Exception):
            gateway.shutdown()
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None
    SQLContext._instantiatedContext = None
