"""Spark's options: those the worker needs, and those of the site's configuration file.

A local master is one JVM with the task slots of this machine. On a cluster the driver is here, executors are started by the
cluster, and the site decides about their size, network and security in `spark-defaults.conf` syntax.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import spark_worker
from spark_worker.settings import WorkerSettings

_LOG4J = Path(spark_worker.__file__).with_name("log4j2.properties")
_SHUFFLE_PARTITIONS = 8
_ARROW_BATCH_RECORDS = 5_000
_TASK_DAEMON = "spark_worker.runtime.task_daemon"
_LOCAL_MASTER = re.compile(r"local(?:\[(\*|\d+)\])?")
_CONF_LINE = re.compile(r"([^\s=:]+)\s*(?:[\s=:]\s*(.*))?")

_ENVIRONMENT = "environment"
"""Folder of an executor into which the packed Python environment is unpacked."""

_PACKED_PYTHON = f"./{_ENVIRONMENT}/bin/python"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_PYTHON = "spark.pyspark.python"
_ARCHIVES = "spark.archives"

_REFUSED = {
    "spark.master": "set MILLSTREAM_SPARK_MASTER",
    "spark.submit.deployMode": "the driver is the worker's own process",
    "spark.driver.memory": "set MILLSTREAM_SPARK_MEMORY_MB",
    "spark.local.dir": "it is a folder of the worker, which it removes",
    "spark.sql.warehouse.dir": "it is a folder of the worker, which it removes",
    "spark.scheduler.mode": "a long replay would delay the archive",
    "spark.speculation": "records would be read and sent twice",
    "spark.python.daemon.module": "the worker sets it",
    "spark.python.worker.reuse": "the worker sets it",
    "spark.sql.session.timeZone": "archived times are in UTC",
    "spark.sql.parquet.outputTimestampType": "archived times are in microseconds",
    "spark.sql.execution.arrow.pyspark.enabled": "the worker sets it",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "the worker sets it",
}
"""Options that a site cannot set, with the reason."""

_SECRET_VARIABLE = re.compile(
    r"spark\.executorEnv\.(?:REDIS_URL|DATABASE_URL|MILLSTREAM_(?!PYTHON$).*)"
)


def read_conf_file(path: Path) -> dict[str, str]:
    """Return the options of a file in the syntax of `spark-defaults.conf`.

    Each line has a name and a value.
    Raises ValueError for an option that the worker needs otherwise, and for one that would show a secret; OSError.
    """
    site: dict[str, str] = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        text = line.strip()
        if not text or text.startswith(("#", "!")):
            continue
        match = _CONF_LINE.fullmatch(text)
        if match is None or not match[1].startswith("spark."):
            raise ValueError(f"{path}, line {number}: expected an option of Spark and its value")
        name, value = match[1], match[2] or ""
        if name in _REFUSED:
            raise ValueError(f"{path}, line {number}: {name} cannot be set: {_REFUSED[name]}")
        if _SECRET_VARIABLE.fullmatch(name):
            raise ValueError(
                f"{path}, line {number}: {name} cannot be set: Spark would show it; tasks get their settings with each job"
            )
        site[name] = value
    return site


def options(
    settings: WorkerSettings, folder: Path, class_options: Sequence[str] = ()
) -> dict[str, str]:
    """Return Spark's options.

    A cluster decides about its executors itself; the driver is always here.
    """
    site = dict(settings.spark_conf)
    java_options = [
        f"-Djava.io.tmpdir={folder}",
        f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}",
        "-Duser.timezone=UTC",
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:+UseSerialGC",  # the JVM passes Arrow data on, and does little else
        *class_options,
    ]
    driver_options = [*map(_quoted, java_options), site.pop(_JAVA_OPTIONS, "")]
    master, parallelism = local_slots(settings)
    return {
        "spark.app.name": "millstream",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(_SHUFFLE_PARTITIONS),
        **parallelism,
        **(_on_cluster(settings, site) if settings.has_cluster else _HERE),
        **site,
        "spark.master": master,
        "spark.submit.deployMode": "client",
        "spark.driver.memory": f"{settings.spark_memory_mb}m",
        _JAVA_OPTIONS: " ".join(driver_options).strip(),
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.scheduler.mode": "FAIR",  # a long replay does not delay the archive
        "spark.speculation": "false",
        "spark.python.daemon.module": _TASK_DAEMON,
        "spark.python.worker.reuse": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.python.sql.dataFrameDebugging.enabled": "false",  # it takes four calls for each column
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": str(_ARROW_BATCH_RECORDS),
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    }


_HERE = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def _on_cluster(settings: WorkerSettings, site: dict[str, str]) -> dict[str, str]:
    """Return options of executors, which unpack the packed environment."""
    if settings.spark_environment is None:
        return {}
    archives = [f"{settings.spark_environment}#{_ENVIRONMENT}", site.pop(_ARCHIVES, "")]
    return {_ARCHIVES: ",".join(filter(None, archives))}


def write_options(file: Path, chosen: Mapping[str, str]) -> None:
    """Write options as a file of Java properties, which only its owner can read."""
    with open(file, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as lines:
        lines.writelines(f"{name}={_escaped(value)}\n" for name, value in chosen.items())


def _escaped(value: str) -> str:
    """Escape a property's value: a leading space would be lost, a backslash be an escape."""
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def python_of_executors(settings: WorkerSettings, here: str) -> str:
    """Return the command of Python where tasks run; `here`: this process's own."""
    if not settings.has_cluster:
        return here
    return settings.spark_conf.get(_PYTHON, _PACKED_PYTHON if settings.spark_environment else here)


def local_slots(settings: WorkerSettings) -> tuple[str, Mapping[str, str]]:
    """Return a local master with task slots for all jobs, and the parallelism of one of them.

    The tasks of a replay last as long as it does: with a slot per core, two would leave none to the archive.
    """
    named = _LOCAL_MASTER.fullmatch(settings.spark_master)
    if named is None:
        return settings.spark_master, {}
    tasks = len(os.sched_getaffinity(0)) if named[1] == "*" else int(named[1] or 1)
    slots = tasks * (settings.jobs_at_once + 1)
    return f"local[{slots}]", {"spark.default.parallelism": str(tasks)}


def _quoted(option: str) -> str:
    """Quote one option for Spark's launcher: a folder's name may have spaces and quotes."""
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
