"""Daemon that forks the Python processes of tasks, with their modules loaded once.

    JVM ──▶ daemon, loads ──fork──▶ task
                          ──fork──▶ task

Spark runs it in place of `pyspark.daemon`. A forked process has only the thread that forked it, so modules that start threads
when they are loaded, as numpy and pyarrow do, are left to the tasks.
"""

import gc
from importlib import import_module

from pyspark.daemon import manager

TASK_MODULES = ("pyspark.worker", "spark_worker.jobs.replay", "uvloop")
"""Modules of tasks; they load most of the others."""


def load_task_modules() -> None:
    """Load the modules, and exempt them from garbage collections."""
    for name in TASK_MODULES:
        import_module(name)
    gc.freeze()  # a collection writes to each object, which ends the sharing of its page


if __name__ == "__main__":
    load_task_modules()
    manager()
