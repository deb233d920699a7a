"""Fault points: an armed fault occurs at its name and nowhere else."""

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


def test_armed_fault_is_raised_only_at_its_name():
    arm("archive.before_commit:raise")

    fault("archive.after_commit")
    with pytest.raises(FaultInjected, match=r"archive\.before_commit"):
        fault("archive.before_commit")


def test_disarmed_fault_has_no_effect():
    arm("")

    fault("archive.before_commit")


def test_fault_can_sleep():
    arm("slow:sleep_30")
    began = time.monotonic()

    fault("slow")

    assert time.monotonic() - began >= 0.03


@pytest.mark.parametrize("told", ["name:explode", "name:sleep_", "name:sleep_long"])
def test_malformed_fault_is_rejected(told):
    with pytest.raises(ValueError, match="a fault must be name"):
        arm(told)


@pytest.mark.parametrize("told", ["here", "here:kill"])
def test_fault_in_environment_kills_the_process(told):
    program = "from spark_worker.runtime.fault_points import fault; fault('there'); print(1); fault('here')"

    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "MILLSTREAM_FAULT": told},
        capture_output=True,
        check=False,
    )

    assert done.returncode == -signal.SIGKILL
