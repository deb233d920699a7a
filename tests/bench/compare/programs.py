"""Installation of the contenders, by their own package managers, into a separate folder.

Debian's packages need root; missing contenders are reported, and the rest is measured.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.bench.ratios import Unmeasurable

HERE = Path(__file__).parent
FOLDER = Path(__file__).parents[3] / ".venv" / ".compare"
NATS = "github.com/nats-io/nats-server/v2@v2.11.10"  # Debian's version has no synchronous writes
RABBITMQ = Path("/usr/lib/rabbitmq/lib")
_INSTALL_S_MAX = 600.0

_ELASTICMQ = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>compare</groupId><artifactId>compare</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.elasticmq</groupId><artifactId>elasticmq-server_2.13</artifactId><version>1.7.1</version></dependency>
  </dependencies>
</project>
"""


def rabbitmq() -> Path:
    """Debian's rabbitmq-server, not started as a service."""
    if not RABBITMQ.exists():
        _apt("rabbitmq-server")
    return next(RABBITMQ.glob("rabbitmq_server-*/sbin/rabbitmq-server"))


def nats() -> Path:
    """Debian's nats-server."""
    if shutil.which("nats-server") is None:
        _apt("nats-server")
    return Path(shutil.which("nats-server") or "nats-server")


def nats_of_today() -> Path:
    """A later nats-server, as a Go module."""
    path = FOLDER / "go" / "nats-server"
    if not path.exists():
        _run(["go", "install", NATS], FOLDER, GOBIN=str(path.parent))
    return path


def native_client() -> Path:
    """Our small client of RabbitMQ and NATS, built on their Go libraries."""
    path = FOLDER / "go" / "compare"
    _run(["go", "build", "-o", str(path), "."], HERE / "native")
    return path


def kinesalite() -> list[str]:
    """The command line."""
    folder = FOLDER / "kinesalite"
    program = folder / "node_modules" / ".bin" / "kinesalite"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}\n')
        _run(["npm", "install", "--no-audit", "--no-fund", "--silent", "kinesalite@3.3.3"], folder)
    return [str(program)]


def elasticmq() -> list[str]:
    """Java with its class path; requires a main class."""
    folder = FOLDER / "elasticmq"
    if not (folder / "lib").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pom.xml").write_text(_ELASTICMQ)
        _run(["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"], folder)
    return ["java", "-cp", f"{folder}/lib/*"]


def _apt(package: str) -> None:
    if os.geteuid() != 0:
        raise Unmeasurable(f"apt-get install {package}")
    for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", package]):
        _run(["apt-get", *words], Path("/"), DEBIAN_FRONTEND="noninteractive", RUNLEVEL="1")


def _run(command: Sequence[str], folder: Path, **environment: str) -> None:
    """Install; raises Unmeasurable if unavailable."""
    if shutil.which(command[0]) is None:
        raise Unmeasurable(f"there is no {command[0]} here")
    folder.mkdir(parents=True, exist_ok=True)
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=_INSTALL_S_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unmeasurable(f"{command[0]} did not end") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["nothing was said"]
        raise Unmeasurable(f"{' '.join(command[:3])}: {lines[-1][:200]}")
