"""Hand-written parts of the OpenAPI document: tags, credentials, problems, retry rules."""

from collections.abc import Iterable
from inspect import cleandoc
from typing import Any

import msgspec

from api.native.problems import CODES, status_of, title_of
from api.nouns import NOUNS
from api.spec.examples import EXAMPLES

Document = dict[str, Any]

TAGS = tuple({"name": noun.plural, "description": noun.tag} for noun in NOUNS if noun.tag)
SECURITY_SCHEMES: Document = {
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key, as `Authorization: Bearer …`.",
    },
    "api_key": {
        "type": "apiKey",
        "in": "header",
        "name": "X-API-Key",
        "description": "An API key, for clients that use `Authorization` for something else.",
    },
    "sigv4": {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "AWS Signature Version 4, accepted only at `POST /` by the SQS- "
        "and Kinesis-compatible APIs.",
    },
}
SECURITY: list[Document] = [{}, {"bearer": []}, {"api_key": []}]
"""None is needed in open mode, which answers on loopback only."""

OPEN: list[Document] = []
"""Security of health checks: none."""

DESCRIPTION = """\
Queues and streams over HTTP. Names are 1 to 80 characters from `A-Z a-z 0-9 _ . -`; durations are in seconds
and can be fractional; sizes are in bytes; offsets are numbers below 2^53; times are RFC 3339 in UTC.

Every error is a problem (RFC 9457) with a stable `code`. `retryable`: the same call may succeed
later. If *nothing happened* is no, the outcome is unknown, as it is when no response arrives. `x-millstream-repeat`
describes the effect of a second call for each operation. `safe`: no further effect. `keyed`: no further effect with the
same Idempotency-Key. `guarded`: no further effect if the body contains a field that `x-millstream-guards`
lists. `unsafe`: the effect may be repeated.

| code | status | retryable | nothing happened |
|---|---|---|---|
"""


def description() -> str:
    """Return the document's description, with a row for each code."""
    rows = [
        f"| `{code}` | {status_of(code)} | {_yes(code.retryable)} | {_yes(code.nothing_happened)} |"
        for code in CODES
    ]
    return DESCRIPTION + "\n".join(rows)


def _yes(fact: bool) -> str:
    return "yes" if fact else "no"


def mark_repeats(document: Document) -> None:
    """Mark each operation with the effect of a second call.

    Clients retry by it where the first call's outcome is unknown: its response was lost, or reported that. A rejected call did
    nothing, and the problem's `retryable` has whether it is worth repeating.
    """
    for methods in document["paths"].values():
        for method, operation in methods.items():
            example = EXAMPLES[operation["operationId"]]
            operation["x-millstream-repeat"] = str(example.repeat_by(method))
            if example.guards:
                operation["x-millstream-guards"] = list(example.guards)


def schemas_of(kinds: Iterable[Any], references: str) -> dict[str, Document]:
    """Return the schemas of types by name.

    Their docstrings lose their indentation, which would be code in Markdown.
    """
    _, schemas = msgspec.json.schema_components(kinds, ref_template=references)
    for schema in schemas.values():
        if "description" in schema:
            schema["description"] = cleandoc(schema["description"])
    return schemas


def problem_schema() -> Document:
    """Return the schema of a problem; `x-millstream-problems` has a row for each code."""
    text: Document = {"type": "string"}
    fault = {
        "type": "object",
        "properties": {"pointer": text, "detail": text, "code": text},
        "required": ["pointer", "detail", "code"],
    }
    return {
        "title": "Problem",
        "description": "Problem details (RFC 9457). Some codes have additional members.",
        "type": "object",
        "properties": {
            "type": text,
            "title": text,
            "status": {"type": "integer"},
            "detail": text,
            "instance": text,
            "code": {"type": "string", "enum": [str(code) for code in CODES]},
            "retryable": {"type": "boolean"},
            "request_id": text,
            "outcome": {
                "type": "string",
                "description": "'unknown' if the call may have taken effect.",
            },
            "errors": {"type": "array", "items": fault},
        },
        "required": ["type", "title", "status", "detail", "code", "retryable", "request_id"],
        "x-millstream-problems": {
            str(code): {
                "status": status_of(code),
                "title": title_of(code),
                "retryable": code.retryable,
                "nothing_happened": code.nothing_happened,
            }
            for code in CODES
        },
    }
