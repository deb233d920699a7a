"""Command of an executor in a pod, from the variables that Spark's driver sets."""

import subprocess
import sys
from pathlib import Path

import pytest

from spark_worker.kubernetes_executor import executor_command
from spark_worker.runtime.java import VECTOR_MODULE, Java

POD = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.1:7078",
    "SPARK_EXECUTOR_ID": "1",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "1024m",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.2",
    "SPARK_EXECUTOR_POD_NAME": "exec-1",
    "SPARK_RESOURCE_PROFILE_ID": "0",
}
VECTOR = f"--add-modules={VECTOR_MODULE}"


def _java(*, has_vector: bool) -> Java:
    return Java(Path("/java"), 17, has_vector)


def _command(variables: dict[str, str], *, has_vector: bool = True) -> list[str]:
    return executor_command(_java(has_vector=has_vector), Path("/spark"), POD | variables)


def test_executor_command_has_parameters_of_the_driver():
    command = _command({})

    assert command[0] == "/java/bin/java"
    assert command[command.index("-cp") + 1] == "/spark/jars/*"
    assert {"-Xms1024m", "-Xmx1024m"} <= set(command)
    for option, value in {
        "--driver-url": POD["SPARK_DRIVER_URL"],
        "--hostname": "10.0.0.2",
        "--podName": "exec-1",
        "--cores": "2",
    }.items():
        assert command[command.index(option) + 1] == value


def test_executor_command_keeps_the_order_of_java_options():
    options = {f"SPARK_JAVA_OPT_{number}": f"-Dn={number}" for number in (10, 2, 0)}

    assert _command(options)[1:4] == ["-Dn=0", "-Dn=2", "-Dn=10"]


@pytest.mark.parametrize("has_vector", [True, False])
def test_executor_command_omits_a_module_that_java_lacks(has_vector):
    command = _command({"SPARK_JAVA_OPT_0": VECTOR}, has_vector=has_vector)

    assert (VECTOR in command) is has_vector


@pytest.mark.parametrize("arguments", [[], ["executor"]])
def test_executor_says_what_is_missing_outside_of_a_pod(arguments):
    done = subprocess.run(
        [sys.executable, "-m", "spark_worker.kubernetes_executor", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert "in a pod of a Spark driver" in done.stderr
    assert "Traceback" not in done.stderr
