"""The parts of the OpenAPI document that are written by hand: tags, credentials, what problems and repeats mean."""

from collections.abc import Iterable
from inspect import cleandoc
from typing import Any

import msgspec

from api.native.problems import TABLE, is_retryable, nothing_happened
from api.spec.retry_semantics import GUARDS, Repeat, repeat_of

Document = dict[str, Any]

TAGS = (
    {"name": "queues", "description": "Work to be done once, delivered at least once."},
    {"name": "streams", "description": "An ordered, replayable record of what happened."},
    {"name": "groups", "description": "Readers that share a stream, and how far they are."},
    {"name": "webhooks", "description": "Messages and records are posted to a URL."},
    {"name": "writes", "description": "Writing in two steps: put records aside, then commit."},
    {"name": "archives", "description": "What of a stream lies in Parquet files."},
    {"name": "replays", "description": "Sending records of a stream again."},
    {"name": "jobs", "description": "The long work that a Spark worker does."},
    {"name": "sockets", "description": "Who is connected over WebSocket."},
    {"name": "processes", "description": "What a deployment is made of."},
    {"name": "namespaces", "description": "Tenants, and what each may have."},
    {"name": "keys", "description": "Who may call, and what they may do."},
    {
        "name": "audit",
        "description": "Who administered what, in a chain that shows what was altered.",
    },
    {"name": "health", "description": "For supervisors and load balancers."},
)
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
        "description": "An API key, where `Authorization` is taken.",
    },
    "sigv4": {
        "type": "apiKey",
        "in": "header",
        "name": "Authorization",
        "description": "AWS Signature Version 4: at `POST /`, where SQS and Kinesis clients speak, and nowhere here.",
    },
}
SECURITY: list[Document] = [{}, {"bearer": []}, {"api_key": []}]
"""None is needed in open mode, which answers on loopback only."""

OPEN: list[Document] = []
"""What health checks need."""

DESCRIPTION = """\
Queues and streams over plain HTTP. Names are 1 to 80 of `A-Z a-z 0-9 _ . -`; durations are in seconds
and may be fractional; sizes are in bytes; offsets are numbers below 2^53; times are RFC 3339 in UTC.

Every refusal is a problem (RFC 9457) with a stable `code`. `retryable`: the same call may succeed
later. Where *nothing happened* is no, the outcome is unknown, as when no answer comes: `x-millstream-repeat`
says of each operation what a second call does. `safe`: nothing more. `keyed`: nothing more with the
same Idempotency-Key. `guarded`: nothing more if a field that `x-millstream-guards` names is in the
body. `unsafe`: perhaps the same once more.

| code | status | retryable | nothing happened |
|---|---|---|---|
"""


def description() -> str:
    """The document's description, with a row for each code."""
    rows = [
        f"| `{code}` | {row.status} | {_yes(is_retryable(code))} | {_yes(nothing_happened(code))} |"
        for code, row in TABLE.items()
    ]
    return DESCRIPTION + "\n".join(rows)


def _yes(fact: bool) -> str:
    return "yes" if fact else "no"


def mark_repeats(document: Document) -> None:
    """Say of each operation what a second call does."""
    for methods in document["paths"].values():
        for method, operation in methods.items():
            name = operation["operationId"]
            repeat = repeat_of(name, method)
            operation["x-millstream-repeat"] = str(repeat)
            if repeat is Repeat.GUARDED:
                operation["x-millstream-guards"] = list(GUARDS[name])


def schemas_of(kinds: Iterable[Any], references: str) -> dict[str, Document]:
    """What kinds look like, by name. Their docstrings lose their indentation, which would be code in Markdown."""
    _, found = msgspec.json.schema_components(kinds, ref_template=references)
    for schema in found.values():
        if "description" in schema:
            schema["description"] = cleandoc(schema["description"])
    return found


def problem_schema() -> Document:
    """The schema of a problem; `x-millstream-problems` has a row for each code."""
    text: Document = {"type": "string"}
    fault = {
        "type": "object",
        "properties": {"pointer": text, "detail": text, "code": text},
        "required": ["pointer", "detail", "code"],
    }
    return {
        "title": "Problem",
        "description": "What went wrong (RFC 9457); some codes have members of their own.",
        "type": "object",
        "properties": {
            "type": text,
            "title": text,
            "status": {"type": "integer"},
            "detail": text,
            "instance": text,
            "code": {"type": "string", "enum": [str(code) for code in TABLE]},
            "retryable": {"type": "boolean"},
            "request_id": text,
            "outcome": {
                "type": "string",
                "description": "'unknown' when the call may have taken effect.",
            },
            "errors": {"type": "array", "items": fault},
        },
        "required": ["type", "title", "status", "detail", "code", "retryable", "request_id"],
        "x-millstream-problems": {
            str(code): {
                "status": row.status,
                "title": row.title,
                "retryable": is_retryable(code),
                "nothing_happened": nothing_happened(code),
            }
            for code, row in TABLE.items()
        },
    }
