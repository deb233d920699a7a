"""Reference page of the REST API, from its OpenAPI document."""

from collections.abc import Iterator
from typing import Any

from api.app import create_app
from api.cli.reference.markdown import code, page, table

INTRO = """\
All operations of the native API. The OpenAPI document (`openapi/openapi.json` in the repository, `/openapi.json` of a running service) has all fields, with examples; `/docs` of a running service shows it, and tries calls. Names have 1 to 80 of the characters `A-Z a-z 0-9 _ . -`; durations are in seconds and
can be fractional; sizes are in bytes; offsets are numbers below 2^53; times are RFC 3339 in UTC. [Errors](errors.md) lists the error codes.

*Again* describes the effect of repeating a call whose response was lost. `safe`: no further effect. `keyed`: no further effect with the same `Idempotency-Key`. `guarded`: no further effect if the body has the named field. `unsafe`: the effect may be repeated.
"""
HEAD = ("operation", "call", "again", "description")


def operations_page() -> str:
    """Return the page of every operation, by tag."""
    document = create_app().openapi()
    operations = list(_operations(document))
    parts = []
    for tag in document["tags"]:
        rows = [
            _row(*operation) for operation in operations if operation[2]["tags"] == [tag["name"]]
        ]
        parts.append(
            f"## {tag['name'].capitalize()}\n\n{tag['description']}\n\n{table(HEAD, rows)}"
        )
    return page("REST operations", INTRO, *parts)


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def _row(method: str, path: str, operation: dict[str, Any]) -> tuple[str, ...]:
    repeat = operation["x-millstream-repeat"]
    guards = ", ".join(code(guard) for guard in operation.get("x-millstream-guards", ()))
    return (
        code(operation["operationId"]),
        code(f"{method} {path}"),
        f"{repeat}: {guards}" if guards else repeat,
        operation["summary"],
    )
