"""The JVM as a child process: started by its own command line, and ends with the worker.

    worker ──stdin──▶ JVM ──stdin──▶ Python daemon ──forks──▶ tasks
           ◀──py4j──┘

The kernel signals the JVM when the worker is killed, and it ends by itself when the worker's end of its stdin is closed;
the Python processes end with the JVM in the same way. Spark's own launcher builds the command line, so that its options
are Spark's; the worker leaves out the one for a module that a small JRE does not have, and the shell scripts, since a
shell in between would be the one that is signalled when the worker ends.
"""

import signal
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from spark_worker.runtime.java import VECTOR_MODULE, Java
from storage.embedded.processes import child_setup, open_log

_LAUNCH_S = 60.0
_START_S = 120.0
_POLL_S = 0.05
END_S = 5.0
_LAUNCHER = ("org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit")
_GATEWAY_FILE = "_PYSPARK_DRIVER_CONN_INFO_PATH"


class SparkFailed(Exception):
    """Spark did not start, or its JVM ended."""


class Launch(msgspec.Struct, frozen=True):
    """The command to start, and the file in which the JVM will publish its gateway."""

    command: Sequence[str]
    environment: Mapping[str, str]
    gateway_file: Path
    log: Path | None


class Jvm:
    """A JVM that was started.

    `spawn` it in a thread that lives as long as the process: at that thread's end the kernel ends the JVM.
    """

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        log = None if launch.log is None else open_log(launch.log)
        try:
            self._process = subprocess.Popen(  # noqa: S603
                launch.command,
                env=launch.environment,
                stdin=subprocess.PIPE,
                stdout=log or subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the worker
                preexec_fn=child_setup(signal.SIGKILL),
            )
        finally:
            if log is not None:
                log.close()

    @property
    def log(self) -> Path | None:
        """The file that the JVM writes to, unless that is this process's standard error."""
        return self._launch.log

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def gateway(self) -> tuple[int, str]:
        """Return the port and the secret of the JVM's gateway, once it exists.

        Raises SparkFailed.
        """
        deadline = time.monotonic() + _START_S
        while not self._launch.gateway_file.exists():
            if not self.alive or time.monotonic() > deadline:
                self.kill()
                raise SparkFailed(f"The JVM did not start{_see(self._launch.log)}.")
            time.sleep(_POLL_S)
        return _read_gateway(self._launch.gateway_file.read_bytes())

    def end(self, within_s: float = END_S) -> None:
        """Request the JVM to end, and kill it when it takes too long."""
        if self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill the JVM immediately."""
        self._process.kill()
        self._process.wait()


def spark_command(
    java: Java, spark_home: Path, options_file: Path, environment: Mapping[str, str]
) -> list[str]:
    """Return the command line of a JVM with a gateway, from Spark's launcher.

    Options are in a file, since some of a site's are secrets, and everybody may read command lines.

    Raises SparkFailed.
    """
    classes = ("-cp", f"{spark_home}/jars/*")
    done = subprocess.run(  # noqa: S603
        [
            java.binary,
            "-Xmx128m",
            *classes,
            *_LAUNCHER,
            "--properties-file",
            options_file,
            "pyspark-shell",
        ],
        capture_output=True,
        env={**environment, "SPARK_SCALA_VERSION": _scala_version(spark_home)},
        timeout=_LAUNCH_S,
        check=False,
    )
    _, _, said = done.stdout.decode().partition(
        "\0\n"
    )  # the output before this is for the terminal
    command = [word for word in said.split("\0") if word]
    if done.returncode != 0 or not command:
        faults = done.stderr.decode(errors="replace").strip().splitlines() or ["no output"]
        raise SparkFailed(f"Spark's launcher failed: {faults[0]}")
    unknown = f"--add-modules={VECTOR_MODULE}"
    return [word for word in command if java.vector or word != unknown]


def _scala_version(spark_home: Path) -> str:
    """Return the Scala version in the jars' names, which Spark's scripts pass to the launcher."""
    core = next((spark_home / "jars").glob("spark-core_*.jar"), None)
    if core is None:
        raise SparkFailed(f"{spark_home} does not contain Spark.")
    return core.name.removeprefix("spark-core_").split("-", 1)[0]


def _read_gateway(content: bytes) -> tuple[int, str]:
    """Parse a port, then a length and that many bytes of secret.

    The file is complete, since the JVM renames it into place.
    """
    port, size = struct.unpack_from("!ii", content)
    return port, content[8 : 8 + size].decode()


def _see(log: Path | None) -> str:
    return "" if log is None else f": see {log}"
