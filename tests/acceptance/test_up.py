"""`millstream up`: it starts, keeps acknowledged data, and ends without leftovers."""

import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.acceptance.deployment import (
    MARKS,
    Deployment,
    all_gone,
    command,
    deployed,
    descendants,
    refused,
)
from tests.conditions import wait_until

README_URL = "http://127.0.0.1:8080"
GONE_S = 30.0

UNFINISHED_REQUEST = (
    b"POST /v1/queues/orders/messages HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\n"
    b"content-type: application/json\r\ncontent-length: 100\r\n\r\n"
)
"""Answered with 100 once its head is read."""

STRICT_SHELL = """
set -euo pipefail
curl() { command curl -sS --fail-with-body "$@" && echo; }
"""


@pytest.fixture(scope="module")
def scratch() -> Iterator[Path]:
    """The temporary directory of `millstream`; its path is short, because sockets are in it."""
    with tempfile.TemporaryDirectory(prefix="ms-") as place:
        (Path(place) / "tmp").mkdir()
        yield Path(place) / "tmp"


@pytest.fixture(scope="module")
def millstream(scratch: Path) -> Iterator[Deployment]:
    """An ephemeral deployment; its temporary directory is empty after it has ended."""
    log = scratch.parent / "log"
    with deployed(log, "--ephemeral", environment={"TMPDIR": str(scratch)}) as deployment:
        yield deployment
    assert list(scratch.iterdir()) == []


def shell(script: str) -> str:
    done = subprocess.run(
        ["bash", "-c", STRICT_SHELL + script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def curl_session(readme: str) -> str:
    blocks = re.findall(r"```sh\n(.*?)```", readme, re.DOTALL)
    return "\n".join(block for block in blocks if "curl" in block)


def test_printed_commands_run(millstream):
    output = shell(millstream.announcement.partition("\n")[2])

    assert '"body":"hello"' in output.replace(": ", ":")


def test_every_process_reports_itself(millstream):
    give_up_at = time.monotonic() + GONE_S
    roles: set[str] = set()
    while not roles >= {"api", "sweeper", "deliverer"} and time.monotonic() < give_up_at:
        seen = httpx.get(f"{millstream.url}/v1/processes").json()["items"]
        roles = {item["role"] for item in seen}

    assert roles >= {"api", "sweeper", "deliverer"}
    assert {item["pid"] for item in seen} <= set(descendants(millstream.process.pid))


def test_arrow_is_not_loaded_without_an_archive(millstream):
    """Arrow is a quarter of the memory of each process, and a tenth of its start-up time."""
    maps = [Path(f"/proc/{pid}/maps") for pid in descendants(millstream.process.pid)]

    assert [path for path in maps if path.exists() and "libarrow" in path.read_text()] == []


def test_stop_and_kill_lose_nothing_and_leave_no_process(tmp_path):
    log, data = tmp_path / "log", str(tmp_path / "data")

    with deployed(log, "--data", data) as first:
        sent = [send(first.url, "orders", f"message {number}") for number in range(5)]
        append(first.url, "clicks", ["a", "b"])
        stopped = descendants(first.process.pid)
        code = first.end(signal.SIGINT)

        assert code == 0
        assert all_gone(stopped, within_s=0)

    with deployed(log, "--data", data) as second:
        assert sorted(drain(second.url, "orders")) == sorted(sent)
        sent = [send(second.url, "orders", "one more")]
        append(second.url, "clicks", ["c"])
        killed = descendants(second.process.pid)
        second.end(signal.SIGKILL)

        assert len(killed) > len(MARKS)
        assert all_gone(killed, within_s=GONE_S)

    with deployed(log, "--data", data) as third:
        assert drain(third.url, "orders") == sent
        assert read(third.url, "clicks") == ["a", "b", "c"]


def test_parts_are_reported_as_they_become_ready(millstream):
    lines = millstream.log.read_text().splitlines()

    ready = [line.partition(" is ready after ")[0] for line in lines if " is ready after " in line]
    assert sorted(ready[:2]) == ["Postgres", "Valkey"]
    assert ready[2:] == ["Database schema", "API"]


def test_small_replay_runs_before_spark_is_installed(tmp_path):
    """`make up` installs Spark beside the running service."""
    metadata = tmp_path / "path" / "pyspark-4.3.0.dist-info"
    metadata.mkdir(parents=True)
    path = os.pathsep.join([str(metadata.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    awaiting = {"MILLSTREAM_SPARK": "wait", "PYTHONPATH": path}

    with deployed(tmp_path / "log", "--ephemeral", environment=awaiting) as deployment:
        append(deployment.url, "clicks", ["a"])
        append(deployment.url, "copies", ["b"])
        request = {"id": "again", "stream": "clicks", "target": {"stream": "copies"}}
        httpx.post(f"{deployment.url}/v1/replays", json=request).raise_for_status()

        wait_until(lambda: state_of(deployment.url, "again") == "done")

        assert "spark_unavailable" in deployment.log.read_text()
        (metadata / "INSTALLER").write_text("uv\n")
        wait_until(lambda: "spark_available" in deployment.log.read_text())


def state_of(url: str, replay: str) -> str:
    response: dict[str, str] = httpx.get(f"{url}/v1/replays/{replay}").json()
    return response["state"]


def test_port_in_use_is_reported_in_one_line(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])

        code, output = refused("--port", port, "--data", str(tmp_path))

    assert code == 4
    assert output == f"millstream: port {port} on 127.0.0.1 is in use: choose another with --port\n"


def test_newer_data_directory_is_reported_in_one_line(tmp_path):
    (tmp_path / "version").write_text("7\n")

    code, output = refused("--port", "0", "--data", str(tmp_path))

    assert code == 1
    assert "has layout version 7" in output
    assert output.count("\n") == 1


def test_missing_server_is_reported_in_one_line(tmp_path):
    code, output = refused(
        "--port",
        "0",
        "--data",
        str(tmp_path / "data"),
        "--server",
        "path",
        environment={"PATH": str(tmp_path)},
    )

    assert code == 4
    assert output == "millstream: valkey-server and redis-server are not on PATH\n"


def test_unreachable_store_exits_without_traceback(tmp_path):
    nowhere = {"DATABASE_URL": f"postgresql://postgres@/millstream?host={tmp_path}"}

    code, output = refused("--port", "0", "--data", str(tmp_path / "data"), environment=nowhere)

    assert code == 4
    assert "Traceback" not in output


def test_open_mode_beyond_loopback_requires_insecure(tmp_path):
    code, output = refused(
        "--host", "0.0.0.0", "--data", str(tmp_path), environment={"MILLSTREAM_AUTH": "open"}
    )

    assert code == 2
    assert "--insecure" in output
    assert output.count("\n") == 1


def test_invalid_setting_is_reported_in_one_line(tmp_path):
    code, output = refused("--data", str(tmp_path), environment={"MILLSTREAM_WORKERS": "none"})

    assert code == 2
    assert output.startswith("millstream: setting ")
    assert output.count("\n") == 1


def test_doctor_reports_no_problem_of_running_deployment(millstream, scratch):
    [data] = scratch.iterdir()

    done = command("doctor", "--json", "--data", str(data), "--port", "0")

    findings = {finding["check"]: finding for finding in json.loads(done.stdout)}
    assert done.returncode == 0, done.stdout
    assert {"python", "open files", "disk", "data", "port"} < set(findings)
    assert "allocator" in findings
    assert {"store latency", "clock", "postgres clock", "migrations"} < set(findings)
    assert "stores" not in findings  # they were found, and have findings of their own


def test_doctor_exits_with_error_when_a_check_fails(tmp_path):
    (tmp_path / "version").write_text("7\n")

    done = command("doctor", "--data", str(tmp_path), "--port", "0")

    assert done.returncode == 1
    assert "layout version 7" in " ".join(done.stdout.split())


def test_serve_runs_against_existing_stores(tmp_path, valkey_url, empty_database_url):
    stores = {"REDIS_URL": valkey_url, "DATABASE_URL": empty_database_url}
    migrated = command("migrate", environment=stores)

    with deployed(
        tmp_path / "log", "--workers", "2", command="serve", environment=stores
    ) as deployment:
        sent = send(deployment.url, "orders", "hello")
        received = drain(deployment.url, "orders")
        code = deployment.end()

    assert migrated.returncode == 0, migrated.stderr
    assert received == [sent]
    assert code == 0


def test_draining_service_refuses_connections(tmp_path, valkey_url, empty_database_url):
    """The kernel accepted connections for seconds that nobody served, and reset them at the end."""
    stores = {"REDIS_URL": valkey_url, "DATABASE_URL": empty_database_url}
    command("migrate", environment=stores)

    with deployed(
        tmp_path / "log", "--workers", "2", command="serve", environment=stores
    ) as deployment:
        url = httpx.URL(deployment.url)
        with socket.create_connection((url.host, url.port)) as slow:
            slow.sendall(UNFINISHED_REQUEST)
            slow.recv(100)  # it is being served
            deployment.process.terminate()
            wait_until(lambda: is_refused(url.host, url.port or 0))
            still_drains = is_open(slow)

    assert still_drains


def is_open(connection: socket.socket) -> bool:
    """Return whether the other side has sent nothing and not closed it."""
    connection.setblocking(False)
    try:
        connection.recv(1)
    except BlockingIOError:
        return True
    return False


def is_refused(host: str, port: int) -> bool:
    """Return whether nobody listens."""
    try:
        socket.create_connection((host, port)).close()
    except ConnectionRefusedError:
        return True
    return False


def test_commands_that_need_stores_report_missing_settings():
    for name in ("serve", "sweep", "migrate"):
        done = command(name)

        assert done.returncode == 2
        assert "set REDIS_URL and DATABASE_URL" in done.stderr


def send(url: str, queue: str, body: str) -> str:
    """Send one message to a queue, which is created when missing."""
    httpx.put(f"{url}/v1/queues/{queue}", json={}).raise_for_status()
    httpx.post(f"{url}/v1/queues/{queue}/messages", json={"body": body}).raise_for_status()
    return body


def drain(url: str, queue: str) -> list[str]:
    """Receive and acknowledge until the queue stays empty for a second; return the bodies."""
    bodies: list[str] = []
    with httpx.Client(base_url=f"{url}/v1/queues/{queue}", timeout=30) as client:
        while messages := receive(client):
            bodies += [message["body"] for message in messages]
            handles = [message["receipt_handle"] for message in messages]
            acks = [{"receipt_handle": handle, "action": "ack"} for handle in handles]
            client.post("/settle", json={"settlements": acks}).raise_for_status()
    return bodies


def receive(client: httpx.Client) -> list[dict[str, str]]:
    answer = client.post("/receive", json={"messages_max": 100, "wait_seconds": 1})
    answer.raise_for_status()
    return list(answer.json()["messages"])


def append(url: str, stream: str, data: list[str]) -> None:
    httpx.put(f"{url}/v1/streams/{stream}", json={"shards": 1}).raise_for_status()
    records = [{"data": item, "key": "k"} for item in data]
    answer = httpx.post(f"{url}/v1/streams/{stream}/records", json={"records": records})
    answer.raise_for_status()


def read(url: str, stream: str) -> list[str]:
    answer = httpx.get(f"{url}/v1/streams/{stream}/shards/0/records", params={"offset": 0})
    answer.raise_for_status()
    return [record["data"] for record in answer.json()["records"]]
