"""Commands to the hot store: script calls, and how they look on the wire."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from hiredis import pack_command

from storage.domain.limits import FLUSH_BYTES_MAX
from storage.redis.scripts import Script

Argument = bytes | str | int
Command = tuple[Argument, ...]


def command_of(known: Script, keys: Sequence[bytes], *arguments: Argument) -> Command:
    """The command that runs a script which the server has loaded."""
    return (b"EVALSHA", known.sha, len(keys), *keys, *arguments)


def packed(commands: Sequence[Command]) -> bytes:
    """Commands as the server reads them."""
    return b"".join([pack_command(cast(Any, command)) for command in commands])


def slices(commands: list[Command]) -> Iterator[list[Command]]:
    """The commands in order, in runs of FLUSH_BYTES_MAX at most."""
    some: list[Command] = []
    size = 0
    for command in commands:
        some.append(command)
        size += _size(command)
        if size >= FLUSH_BYTES_MAX:
            yield some
            some, size = [], 0
    if some:
        yield some


def _size(command: Command) -> int:
    return sum(len(argument) for argument in command if isinstance(argument, bytes))
