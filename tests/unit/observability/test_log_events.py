"""Log events: constants in snake_case, all of them in docs/reference/logs.md."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documentation import DOCS, ROOT

PACKAGES = ("api", "consumers", "spark_worker", "storage")
LOGGERS = {"_log", "log", "logger"}
METHODS = {"critical", "debug", "error", "exception", "info", "warning"}
FIELDS = {"operation", "request_id"}  # rows of the page that are not events
EVENT = re.compile(r"[a-z]+(_[a-z0-9]+)*")
CALLERS = sorted(
    path
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
    if re.search(r"\b(?:_log|log|logger)\.\w+\(", path.read_text())
)


def _events(path: Path) -> Iterator[str]:
    """Yield the event of each logger call in a module; an expression as source text."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="_log"), attr="log"), args=args):
                yield _event(args[1:])
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method), args=args):
                if name in LOGGERS and method in METHODS:
                    yield _event(args)
            case _:
                pass


def _event(args: list[ast.expr]) -> str:
    match args:
        case [ast.Constant(value=str(event))]:
            return event
        case _:
            return ", ".join(map(ast.unparse, args))


@pytest.mark.parametrize("path", CALLERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_log_event_is_a_snake_case_constant(path):
    assert [event for event in _events(path) if not EVENT.fullmatch(event)] == []


def test_reference_lists_every_log_event():
    page = (DOCS / "reference" / "logs.md").read_text()
    listed = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) - FIELDS

    assert {event for path in CALLERS for event in _events(path)} == listed
