"""Package of the Python SDK: what it exports, and when it loads it."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import millstream_client


def names_for_type_checkers() -> dict[str, str]:
    """The names that a type checker sees, with their modules."""
    tree = ast.parse(Path(str(millstream_client.__file__)).read_text())
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    return {
        alias.name: str(node.module).removeprefix("millstream_client.")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_names_are_those_that_type_checkers_see():
    assert names_for_type_checkers() == millstream_client._MODULES
    assert sorted(millstream_client._MODULES) == sorted(millstream_client.__all__)
    assert set(millstream_client.__all__) <= set(dir(millstream_client))


@pytest.mark.parametrize("name", millstream_client.__all__)
def test_name_is_loaded_when_it_is_used(name):
    assert getattr(millstream_client, name).__name__ == name


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = millstream_client.Nothing


def test_client_loads_no_subscriptions():
    program = "import sys, millstream_client; millstream_client.Millstream(); print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    modules = set(run.stdout.split())
    assert "millstream_client.sync.client" in modules
    assert not modules & {"websockets", "millstream_client.aio", "millstream_client.sync.queues"}
