"""Lua scripts on a simulated server: Lua 5.1 with `redis.call` and `cmsgpack`, as servers embed it."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import msgpack
from lupa import lua51

from tests.simulator.hot_store.keyspace import CommandError, Keyspace, Reply

_PRELUDE = b"redis, cmsgpack = {}, {}"
_WITH_ARGUMENTS = (
    b"function(run) return function(keys, argv) KEYS, ARGV = keys, argv return run() end end"
)
_INTEGERS_MAX = 2**63

_SHEBANG = re.compile(rb"\A#![^\n]*")  # flags of the server, none of which it has


class Interpreter:
    """Lua 5.1 with the scripts that were ever loaded; one for all simulated servers of a process.

    Compiling a script takes a millisecond, and scripts hold no state between calls.
    """

    def __init__(self) -> None:
        self._keyspace: Keyspace | None = None
        self._lua = lua51.LuaRuntime(encoding=None, unpack_returned_tuples=True)
        self._scripts: dict[bytes, Any] = {}
        self._edit: tuple[bytes, bytes] | None = None
        self._table = self._lua.table_from
        self._lua.execute(_PRELUDE)
        names = self._lua.globals()
        names[b"redis"][b"sha1hex"] = sha1
        names[b"redis"][b"call"] = self._call
        names[b"cmsgpack"][b"pack"] = self._pack
        names[b"cmsgpack"][b"unpack"] = self._unpack
        self._wrap = self._lua.eval(_WITH_ARGUMENTS)

    def compile(self, text: bytes) -> bytes:
        """Compile a script, unless that was done; return its SHA-1."""
        sha = sha1(text)
        if sha not in self._scripts:
            edited = text.replace(*self._edit) if self._edit else text
            self._scripts[sha] = self._wrap(
                self._lua.eval(b"function() " + _SHEBANG.sub(b"", edited) + b"\nend")
            )
        return sha

    @contextmanager
    def edited(self, before: str, after: str) -> Iterator[None]:
        """Run scripts with this change of their text, as a mutation test does."""
        scripts, self._scripts = self._scripts, {}
        self._edit = before.encode(), after.encode()
        try:
            yield
        finally:
            self._scripts, self._edit = scripts, None

    def run(
        self, keyspace: Keyspace, sha: bytes, keys: Sequence[bytes], arguments: Sequence[bytes]
    ) -> Reply:
        """Run a compiled script. Raises CommandError; what it changed until then persists."""
        self._keyspace = keyspace
        try:
            return self._reply(self._scripts[sha](self._table(keys), self._table(arguments)))
        except lua51.LuaError as error:
            raise CommandError(f"ERR {error} script: {sha.decode()}") from error

    def _call(self, name: bytes, *arguments: Any) -> Any:
        assert self._keyspace is not None
        return self._to_lua(self._keyspace.run(name, [_word(word) for word in arguments]))

    def _to_lua(self, reply: Reply) -> Any:
        if reply is None:
            return False
        if isinstance(reply, list):
            return self._table([self._to_lua(item) for item in reply])
        return reply

    def _reply(self, value: Any) -> Reply:
        if value is None or value is False:
            return None
        if value is True:
            return 1
        if isinstance(value, float):
            return int(value)
        if isinstance(value, int | bytes):
            return value
        if (error := value[b"err"]) is not None:
            raise CommandError(error.decode())
        if (status := value[b"ok"]) is not None:
            return status
        return [self._reply(value[nth]) for nth in range(1, len(value) + 1)]

    def _pack(self, *values: Any) -> bytes:
        return b"".join(
            msgpack.packb(_plain(value), unicode_errors="surrogateescape") for value in values
        )

    def _unpack(self, packed: bytes) -> Any:
        return self._nested(msgpack.unpackb(packed, raw=True, strict_map_key=False))

    def _nested(self, value: Any) -> Any:
        if isinstance(value, list):
            return self._table([self._nested(item) for item in value])
        if isinstance(value, dict):
            return self._table({name: self._nested(item) for name, item in value.items()})
        return value


@cache
def interpreter() -> Interpreter:
    """Return the interpreter of this process."""
    return Interpreter()


def _word(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, float) and (value != int(value) or abs(value) >= _INTEGERS_MAX):
        return f"{value:.17g}".encode()
    return b"%d" % int(value)


def _plain(value: Any) -> Any:
    """Convert a Lua value as cmsgpack does: tables with the keys 1 to n are arrays."""
    if isinstance(value, float) and value == int(value):
        return int(value)
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")  # packed as a string of the same bytes
    if lua51.lua_type(value) != "table":
        return value
    items = dict(value.items())
    if all(nth in items for nth in range(1, len(items) + 1)):
        return [_plain(items[nth]) for nth in range(1, len(items) + 1)]
    return {_plain(name): _plain(item) for name, item in items.items()}


def sha1(text: bytes) -> bytes:
    return hashlib.sha1(text, usedforsecurity=False).hexdigest().encode()
