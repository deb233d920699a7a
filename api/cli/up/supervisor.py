"""Supervisor that keeps processes running.

    start ──▶ running ──ended──▶ waiting (0.2 s, doubling to 10 s) ──▶ start
                 │                    ▲ 0.2 s again after 30 s of running
                 └──stop()──▶ its stop signal ──grace passed──▶ SIGKILL

A program is a separate process, in a separate session: Ctrl-C reaches the supervisor only. The kernel signals it when the
supervisor ends, in any way (`child_setup`, in `storage.embedded.processes`).
"""

import asyncio
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from storage.embedded.errors import EmbeddedServerError
from storage.embedded.processes import RunAs, child_setup, open_log
from storage.embedded.servers import EmbeddedServer

BACK_OFF_S_MIN = 0.2
BACK_OFF_S_MAX = 10.0
SETTLED_S = 30.0  # running this long resets the back-off
GRACE_S = 10.0

Report = Callable[[str], None]


def _nothing(*_: object) -> None:
    """Do nothing: the default of a program's hooks."""


@dataclass(frozen=True, kw_only=True)
class ProcessSpec:
    """A program to run, and how to stop it.

    `keep_open` are descriptors it inherits; without a `log` it writes to our stderr. `prepare` is
    called before every start, `on_end` with the process id after every end, `on_stop` before its stop signal.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    death_signal: signal.Signals = signal.SIGKILL
    grace_s: float = GRACE_S
    keep_open: tuple[int, ...] = ()
    log: Path | None = None
    run_as: RunAs | None = None
    prepare: Callable[[], None] = _nothing
    on_end: Callable[[int], None] = _nothing
    on_stop: Callable[[], None] = _nothing


def server_process(server: EmbeddedServer, keep_open: tuple[int, ...]) -> ProcessSpec:
    """Return a private server as a program.

    It was prepared once already, so that its command is known.
    """
    return ProcessSpec(
        name=server.name,
        command=server.command(),
        stop_signal=server.stop_signal,
        death_signal=server.stop_signal,
        keep_open=keep_open,
        log=server.log,
        run_as=server.run_as,
        prepare=server.prepare,
    )


def back_off_s(previous_s: float, lived_s: float) -> float:
    """Return the delay before the next start, after running `lived_s`.

    `previous_s` is the delay before that run.
    """
    if previous_s == 0 or lived_s >= SETTLED_S:
        return BACK_OFF_S_MIN
    return min(previous_s * 2, BACK_OFF_S_MAX)


def describe_exit(returncode: int) -> str:
    """Describe a return code."""
    if returncode >= 0:
        return f"exit code {returncode}"
    with suppress(ValueError):
        return signal.Signals(-returncode).name
    return f"signal {-returncode}"


class ProcessMonitor:
    """Keeps one program running until it is stopped."""

    def __init__(self, program: ProcessSpec, report: Report) -> None:
        self.program = program
        self.restarts = 0
        self._report = report
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def alive(self) -> bool:
        """True if its process runs now."""
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Start it, and restart it whenever it ends. Raises OSError if it cannot be started."""
        self._process = await _spawn(self.program)
        self._task = asyncio.create_task(self._keep(self._process), name=self.program.name)

    async def _keep(self, process: asyncio.subprocess.Process) -> None:
        wait_s = 0.0
        while True:
            started = time.monotonic()
            returncode = await process.wait()
            wait_s = back_off_s(wait_s, time.monotonic() - started)
            self._on_exit(process.pid, returncode, wait_s)
            process = await self._start_again(wait_s)

    def _on_exit(self, pid: int, returncode: int, wait_s: float) -> None:
        self.restarts += 1
        self.program.on_end(pid)
        self._report(
            f"{self.program.name} (process {pid}) exited with {describe_exit(returncode)}; restarting it in {wait_s:.1f} s"
        )

    async def _start_again(self, wait_s: float) -> asyncio.subprocess.Process:
        while True:
            await asyncio.sleep(wait_s)
            try:
                self.program.prepare()
                self._process = await _spawn(self.program)
            except (OSError, subprocess.SubprocessError, EmbeddedServerError) as error:
                self._report(f"cannot start {self.program.name}: {error}")
                wait_s = BACK_OFF_S_MAX
            else:
                return self._process

    async def stop(self) -> None:
        """Stop it by its stop signal, and by SIGKILL when its grace period has passed."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self.program.on_stop()
        if self._process is not None:
            await _end(self._process, self.program)


async def _spawn(program: ProcessSpec) -> asyncio.subprocess.Process:
    log = open_log(program.log) if program.log else None
    try:
        return await asyncio.create_subprocess_exec(
            *program.command,
            env=program.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=program.keep_open,
            start_new_session=True,
            preexec_fn=child_setup(program.death_signal, program.run_as),
        )
    finally:
        if log is not None:
            log.close()


async def _end(process: asyncio.subprocess.Process, program: ProcessSpec) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(program.stop_signal)
    try:
        await asyncio.wait_for(process.wait(), program.grace_s)
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


class Supervisor:
    """Programs in groups, which stop one after another: last started, first stopped."""

    def __init__(self, report: Report = _nothing) -> None:
        self._report = report
        self._groups: list[list[ProcessMonitor]] = []

    async def start(self, *programs: ProcessSpec, stops_last: bool = False) -> list[ProcessMonitor]:
        """Start a group. Raises OSError when a program cannot be started at all.

        `stops_last`: stop it after all groups that were started before.
        """
        monitors = [ProcessMonitor(program, self._report) for program in programs]
        self._groups.insert(0 if stops_last else len(self._groups), monitors)
        for monitor in monitors:
            await monitor.start()
        return monitors

    async def run_once(self, program: ProcessSpec) -> int:
        """Run a program to its end and return its exit code; if cancelled, stop it."""
        process = await _spawn(program)
        try:
            return await process.wait()
        finally:
            if process.returncode is None:
                await _end(process, program)

    async def stop(self) -> None:
        """Stop every program: the members of a group together, the groups in reverse order."""
        for monitors in reversed(self._groups):
            await asyncio.gather(*(monitor.stop() for monitor in monitors))
        self._groups.clear()
