"""The programs of docs/how-to/frameworks.md, saved and run as shown."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import httpx
import pytest

from millstream_client import Millstream
from tests.conditions import PATIENCE_S
from tests.documentation import DOCS

PAGE = DOCS / "how-to" / "frameworks.md"
PROGRAM = re.compile(r"```(?:python|js)\n(?:#|//) ([\w./]+)\n(.*?)```", re.DOTALL)
T = TypeVar("T")
PYTHON = [sys.executable, "-W", "ignore"]
DJANGO = [*PYTHON, "-m", "django"]


def saved(folder: Path, prefix: str) -> None:
    """Save the page's programs whose path has a prefix."""
    for name, text in PROGRAM.findall(PAGE.read_text()):
        if name.startswith(prefix):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def running(
    *command: str | Path, folder: Path, environment: dict[str, str]
) -> Iterator[subprocess.Popen[str]]:
    """Run a program for the duration of the block, then end it by SIGTERM."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_S)


def until(fact: Callable[[], T]) -> T:
    """Return what a function returns once it is true and raises no transport error."""
    give_up_at = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up_at:
        try:
            if result := fact():
                return result
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise AssertionError("it never became so")


def placed(url: str, order: dict[str, float]) -> dict[str, object]:
    """Place an order at a program that may not be ready yet."""
    response = until(lambda: httpx.post(url, json=order, timeout=PATIENCE_S))
    assert response.status_code == 202, response.text
    return dict(response.json())


def acknowledged(client: Millstream, queue: str) -> bool:
    return client.queue(queue).stats().acknowledged > 0


def test_fastapi_program_runs(service_url, millstream, tmp_path):
    saved(tmp_path, "fastapi_")
    port = free_port()
    environment = {"MILLSTREAM_URL": service_url}
    server = [*PYTHON, "-m", "uvicorn", "fastapi_app:app", "--port", str(port)]
    worker = [*PYTHON, "fastapi_worker.py"]

    with (
        running(*server, folder=tmp_path, environment=environment),
        running(*worker, folder=tmp_path, environment=environment) as working,
    ):
        url = f"http://127.0.0.1:{port}/orders"
        duplicates = [placed(url, {"id": 7, "total": 12.5})["duplicate"] for _ in range(2)]
        assert working.stdout is not None
        line = working.stdout.readline()
        until(lambda: acknowledged(millstream, "fastapi-orders"))

    assert (duplicates, line) == ([False, True], "shipped 7\n")
    assert working.returncode == 0


def test_fastapi_test_passes(tmp_path):
    saved(tmp_path, "fastapi_")
    saved(tmp_path, "test_fastapi_")
    program = "import test_fastapi_app as t; t.test_order_is_queued_once()"

    subprocess.run([*PYTHON, "-c", program], cwd=tmp_path, check=True, timeout=PATIENCE_S)


def test_django_project_runs(service_url, tmp_path):
    saved(tmp_path, "shop/")
    environment = {"MILLSTREAM_URL": service_url, "DJANGO_SETTINGS_MODULE": "shop.settings"}
    program = (
        "import django; django.setup()\n"
        "from django.core.management import call_command\n"
        "from django.test import Client\n"
        "call_command('migrate', run_syncdb=True, verbosity=0)\n"
        "print(Client().post('/orders', {'total': '12.50'}).content.decode())\n"
        "import time\n"
        "from shop.models import Order\n"
        "while not Order.objects.get(pk=1).shipped:\n"
        "    time.sleep(0.05)\n"
    )
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])

    with running(*DJANGO, "work_orders", folder=tmp_path, environment=environment) as working:
        done = subprocess.run(
            [*PYTHON, "-c", program],
            cwd=tmp_path,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    assert (done.stdout, done.returncode) == ('{"order": 1}\n', 0), done.stderr
    assert working.returncode == 0


@pytest.mark.parametrize("partitions", [1, 4])
def test_celery_worker_runs_task(service_url, millstream, tmp_path, partitions):
    queue = f"{service_url}/v1/queues/celery-orders"
    httpx.put(queue, json={"partitions": partitions}).raise_for_status()
    before = millstream.queue("celery-orders").stats().acknowledged
    saved(tmp_path, "celery_")
    notes = tmp_path / "notes"
    notes.mkdir()
    environment = {"BROKER_URL": f"sqs://any:any@{service_url.removeprefix('http://')}"}
    celery = [*PYTHON, "-m", "celery", "-A", "celery_tasks", "worker", "--pool=solo"]
    send = f"import celery_tasks; [celery_tasks.ship.delay(n, {str(notes)!r}) for n in range(8)]"

    with running(
        *celery, "--without-gossip", "--without-mingle", folder=tmp_path, environment=environment
    ):
        subprocess.run(
            [*PYTHON, "-c", send], cwd=tmp_path, env={**os.environ, **environment}, check=True
        )
        until(lambda: len(list(notes.iterdir())) == 8)
        until(lambda: millstream.queue("celery-orders").stats().acknowledged == before + 8)
