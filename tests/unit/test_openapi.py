"""The OpenAPI document: current, unique and complete."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api.app import create_app
from api.native.problems import CODES
from api.spec.examples import EXAMPLES

ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "openapi" / "openapi.json"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return create_app().openapi()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def test_committed_document_is_current(document):
    """When this fails, run `make openapi` and review the difference."""
    assert json.loads(COMMITTED.read_text()) == document


def test_operation_ids_are_unique_words(document):
    names = [operation["operationId"] for _, _, operation in operations(document)]

    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", name) for name in names)


def test_every_operation_is_described_and_has_an_example(document):
    for _, _, operation in operations(document):
        assert operation["summary"].endswith(".") or ":" in operation["summary"]
        assert operation["operationId"] in EXAMPLES
    assert len(list(operations(document))) == len(EXAMPLES)


def test_every_operation_may_return_a_problem(document):
    for _, _, operation in operations(document):
        content = operation["responses"]["default"]["content"]
        assert content.keys() == {"application/problem+json"}
        assert "422" not in operation["responses"]


def test_every_error_code_is_documented(document):
    codes = document["components"]["schemas"]["Problem"]["properties"]["code"]["enum"]

    assert codes == [str(code) for code in CODES]
    assert all(f"| `{code}` |" in document["info"]["description"] for code in codes)


def test_error_codes_are_machine_readable(document):
    told = document["components"]["schemas"]["Problem"]["x-millstream-problems"]

    assert told.keys() == {str(code) for code in CODES}
    assert told["storage_timeout"] == {
        "status": 504,
        "title": "Outcome unknown",
        "retryable": True,
        "nothing_happened": False,
    }


def test_repeat_class_agrees_with_parameters(document):
    """GET is safe, an Idempotency-Key makes a call keyed, and guards are body fields."""
    schemas = document["components"]["schemas"]
    for method, _, operation in operations(document):
        repeat = operation["x-millstream-repeat"]
        guards = operation.get("x-millstream-guards", [])
        takes_key = any(one["name"] == "Idempotency-Key" for one in operation.get("parameters", []))
        if guards:
            body = operation["requestBody"]["content"]["application/json"]["schema"]
            assert set(guards) <= schemas[referred(body)]["properties"].keys()
        assert (repeat == "guarded") == bool(guards)
        assert (repeat == "keyed") == takes_key
        assert method == "post" or repeat == "safe"


def referred(schema: dict[str, Any]) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def test_unclassified_operation_is_unsafe_to_repeat(document):
    repeats = {one["operationId"]: one["x-millstream-repeat"] for _, _, one in operations(document)}

    assert repeats["rotate_webhook_secret"] == repeats["purge_queue"] == "unsafe"
    assert repeats["settle_messages"] == repeats["delete_queue"] == "safe"


def test_every_tag_is_described_and_used(document):
    described = [tag["name"] for tag in document["tags"]]
    used = {tuple(operation["tags"]) for _, _, operation in operations(document)}

    assert sorted(used) == sorted((name,) for name in described)
    assert all(tag["description"] for tag in document["tags"])


def test_credentials_are_described_and_optional_in_open_mode(document):
    schemes = document["components"]["securitySchemes"]

    assert schemes.keys() == {"bearer", "api_key", "sigv4"}
    assert document["security"] == [{}, {"bearer": []}, {"api_key": []}]
    assert document["paths"]["/livez"]["get"]["security"] == []


def test_every_schema_is_referenced_and_exists(document):
    named = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(document)))

    assert named == document["components"]["schemas"].keys()


def test_enumerations_have_unique_names_of_constants(document):
    """Stock generators for Go declare the constants of all types in one package."""
    names = [name for schema in enumerations(document) for name in schema["x-enum-varnames"]]

    assert all(re.fullmatch("[A-Z][A-Z0-9_]*", name) for name in names)
    assert len(names) == len(set(names))
    for schema in enumerations(document):
        assert len(schema["x-enum-varnames"]) == len(schema["enum"])


def enumerations(node: Any) -> Iterator[dict[str, Any]]:
    """Yield the schemas that list their values."""
    if isinstance(node, list):
        for item in node:
            yield from enumerations(item)
    elif isinstance(node, dict):
        if "enum" in node:
            yield node
        for of in node.values():
            yield from enumerations(of)


def members_of(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for name, schema in document["components"]["schemas"].items():
        for member, of in schema.get("properties", {}).items():
            yield name, member, of


def test_no_member_has_the_name_of_a_method_of_every_object(document):
    """Java has `equals`, `hashCode` and others in every class, C# `GetType`."""
    methods = {"equals", "hash_code", "to_string", "get_class", "notify", "wait", "clone"}
    methods |= {"get_type", "get_hash_code", "finalize", "memberwise_clone"}

    assert not {member for _, member, _ in members_of(document)} & methods


def test_names_differ_in_more_than_case_and_underscores(document):
    """Generators write `a_b` as `aB`, and a class to a file of its name."""
    schemas = document["components"]["schemas"]
    names = [(name, _joined(member)) for name, member, _ in members_of(document)]
    operation_ids = [_joined(operation["operationId"]) for _, _, operation in operations(document)]

    for group in (names, [name.lower() for name in schemas], operation_ids):
        assert len(set(group)) == len(group)


def _joined(name: str) -> str:
    return name.replace("_", "").lower()


def test_members_have_one_type_or_schema(document):
    """Typed languages have no union of an integer and a number."""
    for name, member, schema in members_of(document):
        choices = [choice for choice in schema.get("anyOf", []) if choice != {"type": "null"}]
        assert len(choices) <= 1, (name, member)
        assert "oneOf" not in schema


def test_first_media_types_are_of_generators(document):
    """Clients of openapi-python-client had no operation for an Arrow body."""
    supported = {"application/json", "application/problem+json", "application/octet-stream"}
    supported |= {"application/merge-patch+json", "text/event-stream"}
    bodies = [
        body["content"]
        for _, _, operation in operations(document)
        for body in (operation.get("requestBody"), *operation["responses"].values())
        if body and "content" in body
    ]

    assert {next(iter(content)) for content in bodies} <= supported
