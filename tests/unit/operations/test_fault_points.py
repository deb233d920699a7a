"""Fault points: what is armed happens at its name, and nothing anywhere else."""

import os
import signal
import subprocess
import sys
import time

import pytest

from storage.domain.fault_points import FaultInjected, arm, fault


@pytest.fixture(autouse=True)
def disarmed():
    yield
    arm("")


def test_a_fault_that_is_armed_is_raised_at_its_name_and_nowhere_else():
    arm("archive.before_commit:raise")

    fault("archive.after_commit")
    with pytest.raises(FaultInjected, match=r"archive\.before_commit"):
        fault("archive.before_commit")


def test_without_a_fault_nothing_happens():
    arm("")

    fault("archive.before_commit")


def test_a_fault_may_take_time():
    arm("slow:sleep_30")
    began = time.monotonic()

    fault("slow")

    assert time.monotonic() - began >= 0.03


@pytest.mark.parametrize("told", ["name:explode", "name:sleep_", "name:sleep_long"])
def test_a_fault_that_does_not_read_as_one_is_refused(told):
    with pytest.raises(ValueError, match="a fault is name"):
        arm(told)


@pytest.mark.parametrize("told", ["here", "here:kill"])
def test_a_process_told_of_a_fault_by_its_environment_is_killed_there(told):
    program = "from spark_worker.runtime.fault_points import fault; fault('there'); print(1); fault('here')"

    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "MILLSTREAM_FAULT": told},
        capture_output=True,
        check=False,
    )

    assert done.returncode == -signal.SIGKILL
