"""`millstream` commands run in this process: output and exit code."""

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, NamedTuple

import msgspec

from api.cli.main import run


class Ran(NamedTuple):
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


def millstream(*words: str, stdin: bytes = b"") -> Ran:
    """Run a command to its end."""
    out, err = _text(), _text()
    with redirect_stdout(out), redirect_stderr(err), _stdin(stdin):
        code = run(words)
    return Ran(code, _said(out), _said(err))


def _text(content: bytes = b"") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", write_through=True)


def _said(file: io.TextIOWrapper) -> str:
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
