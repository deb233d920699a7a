"""Supervision of processes: back-off, restarts, and stopping."""

import asyncio
import sys
import time
from pathlib import Path

import pytest

from api.cli.up.supervisor import (
    BACK_OFF_S_MAX,
    BACK_OFF_S_MIN,
    ProcessSpec,
    Supervisor,
    back_off_s,
    describe_exit,
)
from tests.conditions import PATIENCE_S

SLEEP = "import time; time.sleep(60)"
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(60)"

TELLS_ITS_END = """
import os, signal, time
def end(*_):
    os.write(1, os.environ["NAME"].encode() + b"\\n")
    raise SystemExit
signal.signal(signal.SIGTERM, end)
os.write(1, b"ready\\n")  # print() cannot be interrupted by another one
time.sleep(60)
"""


def python(code: str, **given) -> ProcessSpec:
    return ProcessSpec(name="child", command=[sys.executable, "-c", code], **given)


def test_back_off_doubles_up_to_its_limit():
    waits = [0.0]
    for _ in range(8):
        waits.append(back_off_s(waits[-1], lived_s=1))

    assert waits[1:] == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, BACK_OFF_S_MAX, BACK_OFF_S_MAX]


def test_back_off_is_reset_after_long_run():
    assert back_off_s(BACK_OFF_S_MAX, lived_s=30) == BACK_OFF_S_MIN


@pytest.mark.parametrize(
    ("returncode", "words"),
    [
        (0, "exit code 0"),
        (3, "exit code 3"),
        (-9, "SIGKILL"),
        (-64, "SIGRTMAX"),
        (-99, "signal 99"),
    ],
)
def test_return_code_is_described(returncode, words):
    assert describe_exit(returncode) == words


async def test_ended_program_is_restarted_and_reported():
    ended: list[int] = []
    said: list[str] = []
    supervisor = Supervisor(said.append)

    [keeper] = await supervisor.start(python("raise SystemExit(3)", on_end=ended.append))
    await until(lambda: keeper.restarts >= 2)
    await supervisor.stop()

    assert len(set(ended)) == len(ended) >= 2
    assert "exited with exit code 3; restarting it in 0.2 s" in said[0]
    assert "restarting it in 0.4 s" in said[1]


async def test_stopping_ends_last_group_first(tmp_path):
    supervisor = Supervisor()
    diary = tmp_path / "diary"
    for name in ("store", "api"):
        await supervisor.start(python(TELLS_ITS_END, log=diary, environment={"NAME": name}))
    await until(lambda: diary.read_text().split() == ["ready", "ready"])

    await supervisor.stop()

    assert diary.read_text().split() == ["ready", "ready", "api", "store"]


async def test_unresponsive_program_is_killed_after_grace_period(tmp_path):
    supervisor = Supervisor()
    log = tmp_path / "logs" / "child.log"
    [keeper] = await supervisor.start(python(DEAF, grace_s=0.2, log=log))
    await until(lambda: log.exists() and log.read_bytes() == b"1\n")

    await asyncio.wait_for(supervisor.stop(), PATIENCE_S)

    assert not keeper.alive


async def test_program_is_prepared_before_each_restart():
    prepared: list[int] = []
    supervisor = Supervisor()

    [keeper] = await supervisor.start(python("", prepare=lambda: prepared.append(1)))
    await until(lambda: keeper.restarts >= 2)
    await supervisor.stop()

    assert len(prepared) >= 1


async def test_missing_program_raises_error_at_first_start():
    supervisor = Supervisor()

    with pytest.raises(FileNotFoundError):
        await supervisor.start(ProcessSpec(name="nothing", command=["/nowhere/to/be/found"]))

    await supervisor.stop()


async def test_run_once_returns_exit_code():
    assert await Supervisor().run_once(python("raise SystemExit(4)")) == 4


async def test_cancelling_run_once_ends_the_program(tmp_path):
    pid_file = tmp_path / "pid"
    code = f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    running = asyncio.create_task(Supervisor().run_once(python(code)))
    await until(lambda: pid_file.exists() and pid_file.read_text() != "")

    running.cancel()
    await asyncio.wait([running])

    assert not is_running(int(pid_file.read_text()))


async def test_program_has_own_session():
    leads = "import os; raise SystemExit(os.getsid(0) != os.getpid())"

    assert await Supervisor().run_once(python(leads)) == 0


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def until(holds, within_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.02)
