"""Executors of a cluster: what differs there, and what caused a failure."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from spark_worker.runtime import cluster
from spark_worker.runtime.cluster import ExecutorAbsence, ExecutorProbe, cause_of, versions

JOB = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 0.0 failed 4 times, most recent failure: \
Lost task 1.3 in stage 0.0 (TID 7) (10.0.0.7 executor 1): {failure}
\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:1)

Driver stacktrace:
\tat java.base/java.lang.Thread.run(Thread.java:840)
"""
IN_TASK = """org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/opt/pyspark.zip/pyspark/worker.py", line 4197, in invoke_udf
    func = read_command()
           ^^^^^^^^^^^^^^
ValueError: the file ends
stream orders, shard 3, offsets 70 to 90

\tat org.apache.spark.api.python.BasePythonRunner.compute(PythonRunner.scala:1)"""
IN_DAEMON = """org.apache.spark.SparkException:
Error from python worker:
  Traceback (most recent call last):
    File "/opt/daemon.py", line 74, in _initialize
      from greenlet import getcurrent
  ModuleNotFoundError: No module named 'greenlet'
PYTHONPATH was:
  /opt/pyspark.zip:/opt/jars
org.apache.spark.SparkException: EOFException occurred while reading the port number.
\tat org.apache.spark.api.python.PythonWorkerFactory.startDaemon(PythonWorkerFactory.scala:1)"""
NO_PYTHON = """java.io.IOException: Cannot run program "/opt/python": error=2, No such file or directory
\tat java.base/java.lang.ProcessBuilder.start(ProcessBuilder.java:1143)
Caused by: java.io.IOException: error=2, No such file or directory"""
REMOVED = """An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: org.apache.spark.SparkException: Exiting due to error from cluster scheduler: Master removed our application: FAILED
\tat org.apache.spark.errors.SparkCoreErrors$.clusterSchedulerError(SparkCoreErrors.scala:279)"""
MEMORY = "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: Killed by OOM"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            JOB.format(failure=IN_TASK),
            "ValueError: the file ends (stream orders, shard 3, offsets 70 to 90)",
        ),
        (JOB.format(failure=IN_DAEMON), "ModuleNotFoundError: No module named 'greenlet'"),
        (
            JOB.format(failure=NO_PYTHON),
            'java.io.IOException: Cannot run program "/opt/python": error=2, No such file or directory',
        ),
        (
            REMOVED,
            "org.apache.spark.SparkException: Exiting due to error from cluster scheduler: Master removed our"
            " application: FAILED",
        ),
        (
            "java.io.IOException: disk full\n\tat java.io.File.write",
            "java.io.IOException: disk full",
        ),
        ("no memory\nand more", "RuntimeError: no memory"),
        ("", "RuntimeError: "),
    ],
)
def test_cause_of_failure_is_the_last_exception(text, cause):
    assert cause_of(RuntimeError(text)) == cause


def test_cause_of_lost_executor_names_the_executor():
    assert cause_of(RuntimeError(JOB.format(failure=MEMORY))) == MEMORY


def test_patch_level_of_python_may_differ_and_nothing_else():
    here = versions()
    major, minor, patch = here["python"].split(".")
    same = ExecutorProbe("a", {**here, "python": f"{major}.{minor}.{int(patch) + 1}"})
    other = ExecutorProbe("b", {**here, "python": f"{major}.{int(minor) + 1}.{patch}"})
    older = ExecutorProbe("c", {**here, "millstream": "0.0.1"})
    without = ExecutorProbe("d", {"python": here["python"]})

    assert list(cluster._differences([same])) == []
    assert list(cluster._differences([other, older])) == [
        f"python is {major}.{int(minor) + 1}.{patch} on executor b, and {here['python']} here",
        f"millstream is 0.0.1 on executor c, and {here['millstream']} here",
    ]
    assert len(list(cluster._differences([without]))) == 3


def context(*, stopped: bool = False, executors: int = 0) -> Any:
    status = SimpleNamespace(size=lambda: executors + 1)
    spark = SimpleNamespace(isStopped=lambda: stopped, getExecutorMemoryStatus=lambda: status)
    return cast(Any, SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: spark), applicationId="app-1"))


def test_application_without_executors_is_lost_after_a_while(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("spark_worker.runtime.cluster.time.monotonic", lambda: now[0])
    absence = ExecutorAbsence(60_000)

    now[0] = 59.0
    assert absence.lost_reason(context()) is None
    assert absence.lost_reason(context(executors=1)) is None
    now[0] = 118.0
    assert absence.lost_reason(context()) is None
    now[0] = 119.0
    assert "no executor for 60 s" in str(absence.lost_reason(context()))


def test_application_that_was_ended_is_lost_at_once():
    absence = ExecutorAbsence(60_000)

    assert "ended the application app-1" in str(
        absence.lost_reason(context(stopped=True, executors=2))
    )
    assert absence.lost_reason(cast(Any, SimpleNamespace(_jsc=None))) == "The driver's JVM ended."
