"""Daemon of Spark's Python processes."""

import subprocess
import sys

CODE = """
import os, sys
from spark_worker.runtime.task_daemon import load_task_modules
load_task_modules()
print(len(os.listdir("/proc/self/task")), {"pyspark.worker", "storage.bootstrap"} <= sys.modules.keys())
"""


def test_task_modules_start_no_thread():
    """A process forked from one with threads can wait for a lock that nobody releases."""
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)

    assert done.stdout.split() == ["1", "True"], done.stderr
