"""Installation of the contenders, by their own package managers, into a separate folder.

Debian's packages need root; missing contenders are reported, and the rest is measured.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.bench.ratios import Unmeasurable

HERE = Path(__file__).parent
FOLDER = Path(__file__).parents[3] / ".venv" / ".compare"
NATS = "github.com/nats-io/nats-server/v2@v2.15.3"  # Debian's version has no synchronous writes
RABBITMQ = Path("/usr/lib/rabbitmq/lib")
_INSTALL_S_MAX = 600.0

_PROJECT = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>compare</groupId><artifactId>compare</artifactId><version>1</version>
  <dependencies>%s</dependencies>
</project>
"""
ELASTICMQ = ("org.elasticmq:elasticmq-server_2.13:1.7.1",)
KAFKA = (
    "org.apache.kafka:kafka_2.13:4.1.0",
    "org.apache.logging.log4j:log4j-slf4j-impl:2.24.3",
)
KAFKA_STREAMS = (KAFKA[0].replace("kafka_2.13", "kafka-streams"), KAFKA[1])


def rabbitmq() -> Path:
    """Debian's rabbitmq-server, not started as a service."""
    if not RABBITMQ.exists():
        _apt("rabbitmq-server")
    return next(RABBITMQ.glob("rabbitmq_server-*/sbin/rabbitmq-server"))


def nats() -> Path:
    """The current nats-server, as a Go module."""
    path = FOLDER / "go" / f"nats-server-{NATS.rpartition('@')[2]}"
    if not path.exists():
        _run(["go", "install", NATS], FOLDER, GOBIN=str(path.parent))
        (path.parent / "nats-server").rename(path)
    return path


def native_client() -> Path:
    """Our small client, built on the Go libraries of the brokers."""
    path = FOLDER / "go" / "compare"
    _run(["go", "build", "-o", str(path), "."], HERE / "native")
    return path


def elasticmq() -> list[str]:
    """Java with its class path; requires a main class."""
    return _java("elasticmq", ELASTICMQ)


def kafka() -> list[str]:
    """Java with its class path; requires a main class."""
    return _java("kafka", KAFKA)


@cache
def kafka_streams() -> list[str]:
    """Java with our application of Kafka Streams, which also is its client."""
    java, option, libraries = _java("kafka-streams", KAFKA_STREAMS)
    classes = FOLDER / "kafka-streams" / "classes"
    words = ["javac", "-cp", libraries, "-d", str(classes)]
    _run([*words, str(HERE / "streams" / "Clicks.java")], FOLDER)
    return [java, option, f"{libraries}:{classes}"]


def _java(name: str, artifacts: Sequence[str]) -> list[str]:
    """Java with these artifacts of Maven, and all that they need."""
    folder = FOLDER / name
    pom = _PROJECT % "".join(map(_dependency, artifacts))
    present = folder / "pom.xml"
    if not (folder / "lib").exists() or present.read_text() != pom:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        present.write_text(pom)
        _run(["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib"], folder)
    return ["java", "-cp", f"{folder}/lib/*"]


def _dependency(artifact: str) -> str:
    group, name, version = artifact.split(":")
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
        f"<version>{version}</version></dependency>"
    )


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
