"""The JavaScript programs of docs/how-to/frameworks.md, saved and run as shown, with the packages of `frameworks/`."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.contract.sdk.test_frameworks import free_port, placed, running, saved, until
from tests.javascript import compile_typescript, install

PACKAGES = Path(__file__).parent / "frameworks"
SDK = Path(__file__).parents[3] / "openapi" / "sdk" / "typescript"
NEXT = Path("node_modules/next/dist/bin/next")

pytestmark = pytest.mark.chaos  # a minute of processor time, and 350 MB of packages


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Iterator[Path]:
    """A folder with the packages, and with the SDK as it is published; the packages are removed."""
    install(PACKAGES)
    compile_typescript(SDK)
    folder: Path = tmp_path_factory.mktemp("frameworks")
    modules = folder / "node_modules"
    shutil.copytree(PACKAGES / "node_modules", modules, symlinks=True)
    package = modules / "millstream-client"
    shutil.copytree(SDK / "dist", package / "dist")
    shutil.copy(SDK / "package.json", package)
    (folder / "package.json").write_text(json.dumps({"private": True}))
    yield folder
    shutil.rmtree(modules)


def test_express_program_runs(service_url, millstream, project):
    saved(project, "express_")
    port = free_port()
    environment = {"MILLSTREAM_URL": service_url, "PORT": str(port)}

    with (
        running("node", "express_app.mjs", folder=project, environment=environment) as server,
        running("node", "express_worker.mjs", folder=project, environment=environment) as working,
    ):
        url = f"http://127.0.0.1:{port}/orders"
        duplicates = [placed(url, {"id": 7, "total": 12.5})["duplicate"] for _ in range(2)]
        assert working.stdout is not None
        line = working.stdout.readline()
        until(lambda: millstream.queue("express-orders").stats().acknowledged == 1)

    assert (duplicates, line) == ([False, True], "shipped 7\n")
    assert (server.returncode, working.returncode) == (0, 0)


def test_next_route_handler_sends(service_url, millstream, project):
    saved(project, "lib/")
    saved(project, "app/")
    queue = millstream.queue("next-orders")
    queue.create(attempts_max=5)
    environment = {"MILLSTREAM_URL": service_url, "NEXT_TELEMETRY_DISABLED": "1"}
    build = ["node", str(NEXT), "build"]
    subprocess.run(build, cwd=project, env={**os.environ, **environment}, check=True, timeout=300)
    port = free_port()
    start = ["node", str(NEXT), "start", "-p", str(port), "-H", "127.0.0.1"]

    with running(*start, folder=project, environment=environment):
        url = f"http://127.0.0.1:{port}/api/orders"
        duplicates = [placed(url, {"id": 7, "total": 12.5})["duplicate"] for _ in range(2)]
        missing = httpx.get(url).status_code

    [message] = queue.receive(messages_max=2)
    assert (duplicates, missing) == ([False, True], 405)
    assert message.json() == {"id": 7, "total": 12.5}
