"""Settings of the worker, and their transfer to the processes that Spark starts.

The tasks of a job run in Python processes under the JVM, here or on other machines. They open their own clients with the
`TaskSettings` that come with their function. Nothing that contains a secret is an option of Spark or of a data frame, a variable of the
environment, or an argument of a command line.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from storage.domain import limits
from storage.settings import StorageSettings

_FAULT = "MILLSTREAM_FAULT"
_GATEWAY_PORT, _GATEWAY_SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
_NOT_INHERITED = (
    *(_GATEWAY_PORT, _GATEWAY_SECRET, "SPARK_LOCAL_DIRS", "PYSPARK_SUBMIT_ARGS"),
    *("REDIS_URL", "DATABASE_URL"),
)
_OWN_PREFIX = "MILLSTREAM_"


def has_cluster(master: str) -> bool:
    """Return whether a master starts executors on other machines than the driver's."""
    return not master.startswith("local")


class WorkerSettings(BaseModel):
    """The stores, and Spark: its master, and the resources it may use.

    `spark_conf` are the site's options of Spark; `spark_environment` is the address of the Python environment that executors
    unpack, if it is not installed there. `scratch` is the directory for its temporary files, below a folder for each session; `log` is the file that the JVM
    writes to, or this process's standard error. `executors_wait_ms`: how
    long a cluster may have no executor. `jobs_at_once`: of long replays and back-tests, and as many of all other jobs. With
    `awaits_spark` a worker starts before Spark is installed, and runs small ones until then.
    """

    model_config = ConfigDict(frozen=True)

    storage: StorageSettings
    spark_master: str = "local[*]"
    spark_memory_mb: int = 1024
    spark_conf: Mapping[str, str] = Field(default={})
    spark_environment: str | None = None
    scratch: Path | None = None
    log: Path | None = None
    jobs_at_once: int = 2
    awaits_spark: bool = False
    jobs_per_session: int = 500
    executors_wait_ms: int = limits.SPARK_EXECUTORS_WAIT_MS

    @property
    def has_cluster(self) -> bool:
        """Return whether executors run on other machines than the driver."""
        return has_cluster(self.spark_master)

    def environment_of_spark(self, java_home: Path, spark_home: Path) -> dict[str, str]:
        """Return the environment of the JVM, and so of every task on this machine."""
        inherited = {name: word for name, word in os.environ.items() if _is_inherited(name)}
        return (
            inherited
            | {
                "JAVA_HOME": str(java_home),
                "SPARK_HOME": str(spark_home),
                "PYSPARK_PYTHON": sys.executable,
                "PYSPARK_DRIVER_PYTHON": sys.executable,
                "LC_ALL": "C.UTF-8",  # without a locale a JVM finds no file whose name is not ASCII
                "PYTHONSAFEPATH": "1",  # a folder named `storage` in the working directory must not be imported
            }
        )


def _is_inherited(name: str) -> bool:
    """Return whether the JVM gets a variable of the worker: none that may contain a secret."""
    return name == _FAULT or not (name in _NOT_INHERITED or name.startswith(_OWN_PREFIX))


def java_home() -> Path | None:
    """Return the JAVA_HOME of the environment."""
    value = os.environ.get("JAVA_HOME")
    return Path(value) if value else None


class TaskSettings:
    """Settings of the stores that a task uses, pickled with its function.

    Without `redis` or `postgres` the task has no address of that store. Secret keys stay with the worker.
    """

    def __init__(
        self, storage: StorageSettings, *, redis: bool = True, postgres: bool = True
    ) -> None:
        needs = {"redis_url": redis, "database_url": postgres}
        blank = {name: "" for name, is_needed in needs.items() if not is_needed}
        needed = storage.model_copy(update={**blank, "webhook_allow": ()})
        self._encoded = needed.model_dump_json(exclude={"secret_keys"})

    def storage(self) -> StorageSettings:
        """Return the settings."""
        return StorageSettings.model_validate_json(self._encoded)


def container_environment() -> Mapping[str, str]:
    """Return the variables with which Spark's driver starts an executor in a container."""
    return dict(os.environ)


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
