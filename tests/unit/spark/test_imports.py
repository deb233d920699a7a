"""Imports of handlers, in a process that has not imported PySpark."""

import subprocess
import sys

RACE = """
import importlib.util, sys, time
from threading import Thread

from spark_worker.main import HANDLERS
from storage.domain.jobs import JobKind


class SlowPySpark:
    def find_spec(self, name, path=None, target=None):
        if name != "pyspark":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def execute_later(module):
            time.sleep(2)  # until the other thread has the lock of a module of the package
            execute(module)

        spec.loader.exec_module = execute_later
        return spec


class NoWork:
    def __getattr__(self, name):
        raise LookupError("imported")


def run(kind):
    try:
        HANDLERS[kind](NoWork())
    except Exception as error:
        print(error)


sys.meta_path.insert(0, SlowPySpark())
threads = [Thread(target=run, args=(kind,)) for kind in (JobKind.VIEW_PLAN, JobKind.VIEW_SCAN)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_handlers_are_imported_by_two_threads_at_once():
    """One of them failed: a worker that starts may take two jobs of views in the same moment."""
    done = subprocess.run([sys.executable, "-c", RACE], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == ["imported"] * 2
