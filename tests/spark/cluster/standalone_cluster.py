"""A Spark cluster of this machine: PySpark's own master and workers, with an environment that knows nothing of Millstream."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

from spark_worker.runtime.java import find_java
from storage.embedded.processes import child_setup
from tests.chaos.network import HERE, Network
from tests.replica_sets import free_ports

SPARK_HOME = Path(pyspark.__file__).parent
ROOT = Path(__file__).parents[3]
START_S = 60.0
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"
_EXECUTOR = b"CoarseGrainedExecutorBackend"
JVM_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""Of a JVM that is too short-lived for the second compiler and a parallel collector to pay off."""


class StandaloneCluster:
    """A master and workers of one core each.

    With a network each is a machine of it, `master`, `worker-0` and so on, and `hidden` is a folder whose files they do not have.
    """

    def __init__(
        self, folder: Path, workers: int, network: Network | None = None, hidden: Path | None = None
    ) -> None:
        self.folder = folder
        self._network = network
        self._hidden = hidden
        self._workers = [f"worker-{number}" for number in range(workers)]
        [self._port] = free_ports(1)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def master_url(self) -> str:
        return f"spark://{self._address('master')}:{self._port}"

    def start_master(self) -> None:
        """Start the master, at the same address each time."""
        self._start("master", _MASTER, "--port", str(self._port))
        self._await("I have been elected leader", "master")

    def start_worker(self, name: str) -> None:
        """Start a worker, and wait until the master has it."""
        where = self.folder / f"{name}-files"
        self._start(name, _WORKER, "-c", "1", "-m", "1g", "-d", str(where), self.master_url)
        self._await("Successfully registered with master", name)

    def restore(self) -> None:
        """Start the master and the workers that do not run, and end executors of former applications."""
        self.kill_executors()
        if "master" not in self._processes:
            self.start_master()
        for worker in self._workers:
            if worker not in self._processes:
                self.start_worker(worker)

    def kill_executors(self) -> None:
        for pid in self.executors():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill(self, name: str) -> None:
        """Kill the master or a worker, as a machine that is lost."""
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def executors(self) -> list[int]:
        """Return the process ids of the executors that run."""
        workers = {process.pid for process in self._processes.values()}
        return [pid for pid in _process_ids() if _parent(pid) in workers and _is_executor(pid)]

    def kill_executor(self) -> None:
        """Kill one executor."""
        os.kill(self.executors()[0], signal.SIGKILL)

    def close(self) -> None:
        """Kill everything; executors end with their driver, and here at once."""
        self.kill_executors()
        for name in list(self._processes):
            self.kill(name)

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _address(self, name: str) -> str:
        return self._network.machine(name).address if self._network else "127.0.0.1"

    def _launcher(self, name: str) -> list[str]:
        """Return the words before a command that runs it on its machine."""
        if self._network is None:
            return []
        launcher = self._network.machine(name).launcher
        return launcher if self._hidden is None else [*launcher, *hiding(self._hidden)]

    def _start(self, name: str, program: str, *words: str) -> None:
        java = find_java()
        environment = {
            "PATH": os.defpath,
            "HOME": str(self.folder),
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_SCALA_VERSION": "2.13",
            "JAVA_HOME": str(java.home),
        }
        command: list[str | Path] = [*self._launcher(name), java.binary, "-Xmx128m", *JVM_OPTIONS]
        command += ["-cp", f"{SPARK_HOME}/jars/*", program, "--host", self._address(name)]
        command += ["--webui-port", str(free_ports(1)[0]), *words]
        with self.log(name).open("wb") as log:
            self._processes[name] = subprocess.Popen(
                command,
                env=environment,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                preexec_fn=child_setup(signal.SIGKILL),
            )

    def _await(self, words: str, name: str) -> None:
        deadline = time.monotonic() + START_S
        while words not in self.log(name).read_text():
            assert self._processes[name].poll() is None, self.log(name).read_text()[-2_000:]
            assert time.monotonic() < deadline, self.log(name).read_text()[-2_000:]
            time.sleep(0.05)


@contextmanager
def standalone_cluster(
    folder: Path, workers: int = 2, network: Network | None = None, hidden: Path | None = None
) -> Iterator[StandaloneCluster]:
    """Run a cluster for the length of the block."""
    cluster = StandaloneCluster(folder, workers, network, hidden)
    try:
        cluster.restore()
        yield cluster
    finally:
        cluster.close()


def hiding(folder: Path) -> list[str]:
    """Return the words before a command that runs it with an empty folder in the place of this one."""
    return ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(folder)]


def conf_of_executors(
    python: str = sys.executable, network: Network | None = None
) -> dict[str, str]:
    """Return options with which executors run this checkout's tasks."""
    return {
        "spark.driver.host": network.machine(HERE).address if network else "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executorEnv.PYTHONPATH": str(ROOT),
        "spark.pyspark.python": python,
    }


def _process_ids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return None


def _is_executor(pid: int) -> bool:
    try:
        return _EXECUTOR in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
