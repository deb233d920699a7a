"""Package of the Python SDK: what it exports, and when it loads it."""

import ast
import asyncio
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


class MissingModules:
    """Finder that is asked last, and notes the modules that no other one has found."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        self.names.append(name)


async def test_call_of_async_client_looks_for_no_missing_module(monkeypatch):
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.readline() not in (b"\r\n", b""):
            pass
        writer.write(b'HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\n{"purged": 0}')
        writer.close()

    missing = MissingModules()
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, millstream_client.AsyncMillstream(f"http://127.0.0.1:{port}") as client:
        queue = client.queue("orders")
        await queue.purge()
        monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, missing])
        await queue.purge()

    assert missing.names == []
