"""`millstream` commands run in this process: output and exit code."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, NamedTuple

import msgspec

from api.cli.main import run


class CommandResult(NamedTuple):
    """A finished command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its output as one JSON value."""
        return msgspec.json.decode(self.out)

    @property
    def lines(self) -> list[Any]:
        """Its output as one JSON value per line."""
        return [msgspec.json.decode(line) for line in self.out.splitlines()]


def millstream(*arguments: str, stdin: bytes = b"") -> CommandResult:
    """Run a command to its end."""
    out, err = _text(), _text()
    with redirect_stdout(out), redirect_stderr(err), _stdin(stdin):
        code = run(arguments)
    return CommandResult(code, _content(out), _content(err))


def _text(content: bytes = b"") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", write_through=True)


def _content(file: io.TextIOWrapper) -> str:
    file.seek(0)
    return file.read()


@contextmanager
def _stdin(content: bytes) -> Iterator[None]:
    before = sys.stdin
    sys.stdin = _text(content)
    try:
        yield
    finally:
        sys.stdin = before
