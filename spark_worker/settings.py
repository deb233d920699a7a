"""Settings of the worker, and their transfer to the processes that Spark starts.

They are passed by the environment alone. The tasks of a job run in Python processes under the JVM. They open their own
clients by what `storage_of_task` finds: a file of the session's that their environment names and only its owner can read.
Nothing that contains a secret is an option of a data frame, or an argument of a command line. On a cluster's machines there
is no such file; there the environment itself has REDIS_URL, DATABASE_URL and MILLSTREAM_ARCHIVE_URL.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from storage.domain.replication.member_urls import has_several_hosts
from storage.settings import StorageSettings

_TASK_FILE = "MILLSTREAM_TASK_FILE"
_FAULT = "MILLSTREAM_FAULT"
_GATEWAY_PORT, _GATEWAY_SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
_NOT_INHERITED = (_GATEWAY_PORT, _GATEWAY_SECRET, "SPARK_LOCAL_DIRS", "PYSPARK_SUBMIT_ARGS")


class WorkerSettings(BaseModel):
    """The stores, and Spark: its master, and the resources it may use.

    `scratch` is the directory for its temporary files, below a folder for each session; `log` is the file that the JVM
    writes to, or this process's standard error. `jobs_at_once`: of long replays, and as many of all other jobs. With
    `awaits_spark` a worker starts before Spark is installed, and runs small replays until then.
    """

    model_config = ConfigDict(frozen=True)

    storage: StorageSettings
    spark_master: str = "local[*]"
    spark_memory_mb: int = 1024
    scratch: Path | None = None
    log: Path | None = None
    jobs_at_once: int = 2
    awaits_spark: bool = False
    jobs_per_session: int = 500

    def environment_of_spark(
        self, java_home: Path, spark_home: Path, task_file: Path
    ) -> dict[str, str]:
        """Return the environment of the JVM, and so of every task on this machine."""
        inherited = {name: word for name, word in os.environ.items() if name not in _NOT_INHERITED}
        return (
            inherited
            | {
                "JAVA_HOME": str(java_home),
                "SPARK_HOME": str(spark_home),
                "PYSPARK_PYTHON": sys.executable,
                "PYSPARK_DRIVER_PYTHON": sys.executable,
                "LC_ALL": "C.UTF-8",  # without a locale a JVM finds no file whose name is not ASCII
                "PYTHONSAFEPATH": "1",  # a folder named `storage` in the working directory must not be imported
                _TASK_FILE: str(task_file),
            }
        )


def java_home() -> Path | None:
    """Return the JAVA_HOME of the environment."""
    value = os.environ.get("JAVA_HOME")
    return Path(value) if value else None


def write_task_settings(task_file: Path, storage: StorageSettings) -> None:
    """Write the file that tasks read."""
    new = task_file.with_suffix(".new")
    with open(new, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(storage.model_dump_json(exclude={"secret_keys"}))
    new.rename(task_file)


def storage_of_task() -> StorageSettings:
    """Return the stores' settings for a task.

    Raises KeyError where there are none.
    """
    task_file = Path(os.environ.get(_TASK_FILE, "/nonexistent"))
    if task_file.exists():
        return StorageSettings.model_validate_json(task_file.read_text())
    return StorageSettings(
        redis_url=os.environ["REDIS_URL"],
        database_url=os.environ["DATABASE_URL"],
        archive_url=os.environ.get("MILLSTREAM_ARCHIVE_URL"),
        durability="replicated" if has_several_hosts(os.environ["REDIS_URL"]) else "always",
    )


@cache
def armed_fault() -> str:
    """Return the fault that a failure test arms, or '': see `storage.domain.fault_points`."""
    return os.environ.get(_FAULT, "")


@contextmanager
def gateway_environment(port: int, secret: str) -> Iterator[None]:
    """Let PySpark connect to a JVM that runs already, whose address it reads from environment."""
    os.environ[_GATEWAY_PORT], os.environ[_GATEWAY_SECRET] = str(port), secret
    try:
        yield
    finally:
        del os.environ[_GATEWAY_PORT], os.environ[_GATEWAY_SECRET]
