"""Every operation of the generated core, called with the OpenAPI document's examples."""

import io
import json
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec
import pytest

from millstream_client import Millstream
from millstream_client.core.types import File
from tests.contract.example_walk import STAGED, Walk
from tests.former_names import current_names

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "openapi" / "sdk" / "python" / "millstream_client"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    body: dict[str, Any] = json.loads((ROOT / "openapi" / "openapi.json").read_text())
    return body


class Core:
    """Calls the core's function of an operation with the values of an example."""

    def __init__(self, document: dict[str, Any], millstream: Millstream) -> None:
        self._schemas = document["components"]["schemas"]
        self._millstream = millstream
        self._operations = {
            operation["operationId"]: (method.upper(), path, operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        }

    def call(self, name: str, path: str, body: Any) -> Any:
        _, template, operation = self._operations[name]
        function = getattr(self._module(operation), name)
        arguments = self._in_path(template, path) | self._in_query(operation, path)
        if body is not None:
            arguments["body"] = self._body(operation, body)
        return self._millstream.call(function(**arguments))

    def _module(self, operation: dict[str, Any]) -> Any:
        tag, name = operation["tags"][0], operation["operationId"]
        return import_module(f"millstream_client.core.api.{tag}.{name}")

    def _in_path(self, template: str, path: str) -> dict[str, Any]:
        words = zip(template.split("/"), urlsplit(path).path.split("/"), strict=True)
        return {name[1:-1]: value for name, value in words if name.startswith("{")}

    def _in_query(self, operation: dict[str, Any], path: str) -> dict[str, Any]:
        schemas = {one["name"]: one["schema"] for one in operation.get("parameters", [])}
        asked = parse_qsl(urlsplit(path).query)
        return {
            {"from": "from_"}.get(name, name): self._value(schemas[name], value)
            for name, value in asked
        }

    def _value(self, schema: dict[str, Any], value: str) -> Any:
        if "$ref" in schema:
            return self._model(schema["$ref"])(value)
        kinds = schema.get("type", "string")
        kind = next(one for one in ([kinds] if isinstance(kinds, str) else kinds) if one != "null")
        return [self._value(schema["items"], value)] if kind == "array" else _READERS[kind](value)

    def _body(self, operation: dict[str, Any], body: Any) -> Any:
        if isinstance(body, bytes):
            return File(io.BytesIO(body))
        contents = operation["requestBody"]["content"]
        if "application/octet-stream" in contents:
            return File(io.BytesIO(msgspec.json.encode(body)))
        schema = contents["application/json"]["schema"]
        return self._model(schema["$ref"]).from_dict(body)

    def _model(self, reference: str) -> Any:
        name = reference.rpartition("/")[2]
        snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in name).removeprefix("_")
        return getattr(import_module(f"millstream_client.core.models.{snake}"), name)


def _boolean(word: str) -> bool:
    return word == "true"


_READERS: dict[str, Callable[[str], Any]] = {
    "boolean": _boolean,
    "integer": int,
    "number": float,
    "string": str,
}


@pytest.mark.usefixtures("view_worker")
def test_every_operation_is_callable_and_its_response_parsed(
    document, client, millstream, name, make_job, fail_job, log_delivery, show_socket
):
    core = Core(document, millstream)
    walk = Walk(name, make_job, fail_job, log_delivery, show_socket)

    for operation, example in walk.steps():
        for method, path, needed in example.before:
            assert client.request(method, walk.own(path), json=_own(walk, needed)).is_success
        body = STAGED if operation == "stage_records" else _own(walk, example.request)
        result = core.call(operation, walk.own(example.path), body)

        if isinstance(example.answer, dict):
            walk.learn(operation, result.to_dict())
            assert current_names(result.to_dict()) == example.answer.keys(), operation
        elif operation == "read_table":
            assert result.payload.read(4) == b"\xff\xff\xff\xff"
        elif operation.endswith("_events"):
            assert result.startswith("retry: "), operation
        else:
            assert result is None, operation


def _own(walk: Walk, body: Any) -> Any:
    return None if body is None else walk.own_body(body)


def test_generated_code_is_up_to_date(tmp_path):
    """When this fails, run `make sdk` and look at the difference."""
    made = tmp_path / "millstream_client"
    (made / "aio").mkdir(parents=True)
    for source in (PACKAGE / "aio").glob("*.py"):
        (made / "aio" / source.name).write_text(source.read_text())

    command = [sys.executable, ROOT / "openapi" / "generate.py", "python", made]
    subprocess.run(command, check=True)

    for folder in ("core", "sync"):
        fresh = {path.relative_to(made): path.read_text() for path in (made / folder).rglob("*.py")}
        for path, text in fresh.items():
            assert (PACKAGE / path).read_text() == text, f"{path} is out of date"
        if folder == "core":
            committed = {path.relative_to(PACKAGE) for path in (PACKAGE / folder).rglob("*.py")}
            assert committed == fresh.keys()
