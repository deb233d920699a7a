"""OpenAPI 3.1.0 document: FastAPI's control plane, the hot routes, and one problem schema.

FastAPI's output is converted to the form that client generators read without warnings.
"""

from collections.abc import Mapping, Sequence

import msgspec
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from api.http.codecs import BYTES, JSON
from api.http.routing import Route
from api.native.problems import PROBLEM_JSON
from api.spec.components import (
    OPEN,
    SECURITY,
    SECURITY_SCHEMES,
    TAGS,
    Document,
    description,
    mark_repeats,
    problem_schema,
    schemas_of,
)
from api.spec.examples import EXAMPLES
from api.spec.generator_dialect import name_enum_values, normalise
from storage.domain import limits
from storage.domain.names import STREAM_PATTERN

OPENAPI_VERSION = "3.1.0"
REF = "#/components/schemas/{name}"
_NAME: Document = {"type": "string", "pattern": r"^[A-Za-z0-9_.-]{1,80}$"}
_PATH_SCHEMAS: dict[str, Document] = {
    "shard": {"type": "integer", "minimum": 0},
    "stream": {"type": "string", "pattern": STREAM_PATTERN},
}
_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A retry with the same key within ten minutes adds nothing and returns"
    " the first response.",
    "schema": {
        "type": "string",
        "minLength": 1,
        "maxLength": limits.IDEMPOTENCY_KEY_CHARACTERS_MAX,
    },
}
_ACKNOWLEDGE = {
    "name": "Millstream-Acknowledge",
    "in": "header",
    "required": False,
    "description": "With durability=replicated: answer once the primary has the data on disk, before the"
    " replicas have it. A fail-over may lose it. The answer has the same header.",
    "schema": {"type": "string", "pattern": "^primary$"},
}


def build_document(app: FastAPI, routes: Sequence[Route]) -> Document:
    """Build the complete document; the same code gives the same bytes."""
    document = get_openapi(
        title=app.title,
        version=app.version,
        openapi_version=OPENAPI_VERSION,
        summary="Queues and streams over HTTP",
        description=description(),
        routes=app.routes,
        tags=[dict(tag) for tag in TAGS],
        servers=[{"url": "http://127.0.0.1:8080"}],
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
    )
    for operation in _operations(document):
        _clean_descriptions(operation)
    _add_hot_routes(document, routes)
    _add_problems(document)
    _add_security(document)
    mark_repeats(document)
    _add_examples(document)
    document["components"]["schemas"] = dict(sorted(document["components"]["schemas"].items()))
    document["paths"] = dict(sorted(document["paths"].items()))
    normalised: Document = normalise(document)
    name_enum_values(normalised["components"]["schemas"])
    return normalised


def _clean_descriptions(operation: Document) -> None:
    """Take the docstring's first line as summary; make parameters optional, not nullable."""
    operation["summary"] = operation["description"].split("\n", 1)[0]
    for parameter in operation.get("parameters", []):
        schema = _without_null(parameter["schema"])
        parameter["schema"] = {
            name: value for name, value in schema.items() if name not in ("title", "description")
        }


# ── Hot routes ──


def _add_hot_routes(document: Document, routes: Sequence[Route]) -> None:
    types = {kind for route in routes for kind in _types(route)}
    ordered = sorted(types, key=lambda kind: kind.__name__)
    schemas = schemas_of(ordered, REF)
    for route in routes:
        operations = document["paths"].setdefault(route.path, {})
        operations[route.method.lower()] = _operation(route, schemas)
    queries = {route.query.__name__ for route in routes if route.query is not None}
    added = {name: schema for name, schema in schemas.items() if name not in queries}
    shared = added.keys() & document["components"]["schemas"].keys()
    assert not shared, f"two shapes have the name {shared}"
    document["components"]["schemas"].update(added)


def _types(route: Route) -> list[type[msgspec.Struct]]:
    body = [route.body.documented] if route.body and route.body.documented else []
    query = [route.query] if route.query else []
    return [*body, *query, *route.answers]


def _operation(route: Route, schemas: Mapping[str, Document]) -> Document:
    summary, _, rest = (route.handler.__doc__ or "").partition("\n")
    operation: Document = {
        "tags": [route.noun],
        "summary": summary,
        "description": _unindented(rest) or summary,
        "operationId": route.operation,
        "parameters": _parameters(route, schemas),
    }
    if route.body is not None:
        operation["requestBody"] = _request_body(route.body.documented)
    operation["responses"] = _responses(route)
    return operation


def _unindented(text: str) -> str:
    return "\n".join(line.strip() for line in text.strip().splitlines())


def _parameters(route: Route, schemas: Mapping[str, Document]) -> list[Document]:
    words = [word[1:-1] for word in route.path.split("/") if word.startswith("{")]
    path = [
        {"name": word, "in": "path", "required": True, "schema": _PATH_SCHEMAS.get(word, _NAME)}
        for word in words
    ]
    headers = [_IDEMPOTENCY_KEY, _ACKNOWLEDGE] if route.idempotent else []
    if route.query is None:
        return [*path, *headers]
    properties = schemas[route.query.__name__]["properties"]
    return [
        *path,
        *headers,
        *(_query_parameter(name, schema) for name, schema in properties.items()),
    ]


def _query_parameter(name: str, schema: Document) -> Document:
    schema = _without_null(dict(schema))
    parameter: Document = {"name": name, "in": "query", "required": False}
    if description := schema.pop("description", ""):
        parameter["description"] = description
    if schema.get("default") in (None, "", ()):
        schema.pop("default", None)
    return {**parameter, "schema": schema}


def _without_null(schema: Document) -> Document:
    choices = [choice for choice in schema.pop("anyOf", []) if choice != {"type": "null"}]
    return {**schema, **choices[0]} if choices else schema


def _request_body(kind: type[msgspec.Struct] | None) -> Document:
    if kind is None:
        schema = {"type": "string", "format": "binary"}
        return {"required": True, "content": {BYTES: {"schema": schema}}}
    required = any(field.required for field in msgspec.structs.fields(kind))
    return {"required": required, "content": {JSON: {"schema": _ref(kind.__name__)}}}


def _responses(route: Route) -> Document:
    """Return the first response of each status.

    A single item has the batch's status where both have the same one.
    """
    responses: Document = {}
    for kind, status in route.answers.items():
        responses.setdefault(
            str(status),
            {
                "description": (kind.__doc__ or "").split("\n", 1)[0],
                "content": _contents(route, kind),
            },
        )
    return responses


def _contents(route: Route, kind: type[msgspec.Struct]) -> Document:
    """Return the content of a response; a streaming response has items.

    3.1 has no keyword for these yet, and generators read a string.
    """
    if not route.lasting:
        return {JSON: {"schema": _ref(kind.__name__)}}
    return {
        media_type: {
            "schema": {"type": "string", "description": text},
            "x-itemSchema": _ref(kind.__name__),
        }
        for media_type, text in route.lasting.items()
    }


def _ref(name: str) -> Document:
    return {"$ref": REF.format(name=name)}


# ── Problems and examples ──


def _add_problems(document: Document) -> None:
    schemas = document["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Problem"] = problem_schema()
    answer = {
        "description": "A problem",
        "content": {PROBLEM_JSON: {"schema": _ref("Problem")}},
    }
    for operation in _operations(document):
        operation["responses"].pop("422", None)
        operation["responses"]["default"] = answer


def _add_security(document: Document) -> None:
    document["components"]["securitySchemes"] = SECURITY_SCHEMES
    document["security"] = SECURITY
    for operation in _operations(document):
        if operation["tags"] == ["health"]:
            operation["security"] = OPEN


def _operations(document: Document) -> list[Document]:
    return [operation for path in document["paths"].values() for operation in path.values()]


def _add_examples(document: Document) -> None:
    for operation in _operations(document):
        example = EXAMPLES[operation["operationId"]]
        if example.request is not None:
            contents = operation["requestBody"]["content"]
            next(iter(contents.values()))["example"] = example.request
        if example.answer is not None:
            operation["responses"][str(example.status)]["content"][JSON]["example"] = example.answer
