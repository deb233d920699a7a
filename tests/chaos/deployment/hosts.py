"""Hosts: a machine of the network, its program, and the four things that befall it.

cut      its cable is pulled, and plugged in again
kill     all its processes are killed, and its supervisor starts them again
pause    all its processes stop, and go on
replace  it is lost at once with its disk, and another one comes in its place
"""

import asyncio
import shutil
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from storage.embedded.processes import child_setup
from tests.acceptance.deployment import descendants, without_settings
from tests.chaos.deployment.releases import Release
from tests.chaos.network import Network
from tests.chaos.site import signalled

FAULTS = ("cut", "kill", "pause", "replace")
API, API_PORT = "api", 8080
COMMANDS = {"sweeper": ("sweep",), "deliverer": ("deliver",), "worker": ("worker",)}
STOPPED_S = 40.0
"""Time for a program to end after SIGTERM, above those of its own."""


class Host(ABC):
    """A machine with a program."""

    def __init__(self, name: str, network: Network) -> None:
        self.name = name
        self._network = network

    @property
    @abstractmethod
    def machine(self) -> str:
        """Name of its machine."""

    @property
    @abstractmethod
    def pids(self) -> set[int]:
        """Process ids of its program."""

    @abstractmethod
    def lose(self) -> None:
        """Kill its program."""

    @abstractmethod
    async def start(self) -> None:
        """Start its program again."""

    @abstractmethod
    async def replace(self, seconds: float) -> None:
        """Lose it with its disk, and put another one in its place."""

    async def cut(self, seconds: float) -> None:
        """Pull its cable for a while."""
        self._network.connect(self.machine, is_up=False)
        try:
            await asyncio.sleep(seconds)
        finally:
            self._network.connect(self.machine, is_up=True)

    async def kill(self, seconds: float) -> None:
        """Kill its processes, and start them after a while."""
        self.lose()
        await asyncio.sleep(seconds)
        await self.start()

    async def pause(self, seconds: float) -> None:
        """Stop its processes for a while."""
        stopped = self.pids
        _signal(stopped, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            _signal(stopped, signal.SIGCONT)


class Service(Host):
    """A host that runs a command of `millstream`; the version may change."""

    def __init__(
        self,
        name: str,
        network: Network,
        *,
        place: Path,
        environment: Mapping[str, str],
        release: Release,
    ) -> None:
        super().__init__(name, network)
        self.release = release
        self._program = name.partition(" ")[0]
        self._place = place
        self._disk = place / name
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def machine(self) -> str:
        return self.name

    @property
    def address(self) -> str:
        """Host and port of an API machine, empty for others."""
        host = self._network.machine(self.name).address
        return f"{host}:{API_PORT}" if self._program == API else ""

    def _words(self) -> Sequence[str]:
        if self._program != API:
            return COMMANDS[self._program]
        host, _, port = self.address.partition(":")
        return ("serve", "--workers", "1", "--host", host, "--port", port, "--insecure")

    @property
    def pids(self) -> set[int]:
        if self._process is None:
            return set()
        return {self._process.pid, *descendants(self._process.pid)}

    async def start(self) -> None:
        self._spawn()

    def _spawn(self) -> None:
        self._disk.mkdir(exist_ok=True)
        launcher = self._network.machine(self.name).launcher
        with self._place.joinpath(self.release.log).open("a") as log:
            self._process = subprocess.Popen(
                [*launcher, sys.executable, "-m", "api.cli", *self._words()],
                cwd=self._disk,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env={**without_settings(), **self._environment, **self.release.environment},
                preexec_fn=child_setup(signal.SIGKILL),
            )

    def lose(self) -> None:
        if self._process is not None:
            _signal(self.pids, signal.SIGKILL)
            self._process.wait()

    async def replace(self, seconds: float) -> None:
        self._network.connect(self.name, is_up=False)
        self.lose()
        shutil.rmtree(self._disk)
        await asyncio.sleep(seconds)
        self._network.connect(self.name, is_up=True)
        await self.start()

    async def stop(self) -> None:
        """End it as an upgrade does."""
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            await asyncio.to_thread(process.wait, STOPPED_S)
        except subprocess.TimeoutExpired:
            self.lose()
            raise

    async def upgrade(self, release: Release) -> None:
        """Stop it, and start it as another version."""
        await self.stop()
        self.release = release
        await self.start()

    @property
    def runs(self) -> bool:
        """Return whether its program has not ended."""
        return self._process is not None and self._process.poll() is None


def _signal(pids: set[int], number: signal.Signals) -> None:
    for pid in pids:
        signalled(pid, number)
