"""Operations of the generated client that commands name."""

import ast
from importlib import import_module
from pathlib import Path

import pytest

from api.cli.shell.definitions import Definition
from api.cli.shell.operations import JsonBody, operation
from tests.documentation import ROOT

COMMANDS = sorted((ROOT / "api/cli/commands").glob("*.py"))
VERBS = ("put", "delete")


def named_operations(path: Path) -> set[str]:
    """The first arguments of calls, such as `keys.get_key`, in a module of commands."""
    calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return {
        str(call.args[0].value)
        for call in calls
        if ast.unparse(call.func) in ("cli.call", "cli.pages", "operation")
        and isinstance(call.args[0], ast.Constant)
    }


def definitions() -> list[Definition]:
    modules = [import_module(f"api.cli.commands.{path.stem}") for path in COMMANDS]
    values = [value for module in modules for value in vars(module).values()]
    return [value for value in values if isinstance(value, Definition)]


def is_operation(name: str) -> bool:
    module = import_module(f"millstream_client.core.api.{name}")
    return callable(getattr(module, name.partition(".")[2]))


def test_commands_name_existing_operations():
    names = set().union(*map(named_operations, COMMANDS))

    assert "keys.get_key" in names
    assert all(map(is_operation, names))


def test_definitions_name_existing_operations():
    assert len(definitions()) == 10
    assert all(is_operation(noun.operation(verb)) for noun in definitions() for verb in VERBS)


def test_operation_omits_parameters_that_are_none():
    call = operation("queues.list_queues", prefix="or", cursor=None)

    assert call.params == operation("queues.list_queues", prefix="or").params


@pytest.mark.parametrize("body", [{}, {"shards": 2, "tags": None}])
def test_operation_sends_json_body_as_given(body):
    assert operation("streams.put_stream", "clicks", body=JsonBody(body)).json == body
