"""Commands to the hot store: script calls, and their wire format."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from hiredis import pack_command

from storage.domain.limits import COPIED_BYTES_MAX, FLUSH_BYTES_MAX
from storage.redis.scripts import Script

Argument = bytes | str | int
Command = tuple[Argument, ...]


def command_of(loaded: Script, keys: Sequence[bytes], *arguments: Argument) -> Command:
    """Return the command that runs a script which the server has loaded."""
    return (b"EVALSHA", loaded.sha, len(keys), *keys, *arguments)


def packed(commands: Sequence[Command]) -> list[bytes]:
    """Encode commands in pieces; large arguments are pieces of their own, and are not copied."""
    pieces: list[bytes] = []
    small: list[bytes] = []
    for command in commands:
        if _size(command) <= COPIED_BYTES_MAX:
            small.append(pack_command(cast(Any, command)))
            continue
        small.append(b"*%d\r\n" % len(command))
        for argument in command:
            encoded = argument if isinstance(argument, bytes) else str(argument).encode()
            small.append(b"$%d\r\n" % len(encoded))
            if len(encoded) > COPIED_BYTES_MAX:
                pieces += b"".join(small), encoded
                small = [b"\r\n"]
            else:
                small += encoded, b"\r\n"
    return [*pieces, b"".join(small)]


def slices(commands: list[Command]) -> Iterator[list[Command]]:
    """Divide the commands, in order, into runs of FLUSH_BYTES_MAX at most."""
    run: list[Command] = []
    size = 0
    for command in commands:
        run.append(command)
        size += _size(command)
        if size >= FLUSH_BYTES_MAX:
            yield run
            run, size = [], 0
    if run:
        yield run


def _size(command: Command) -> int:
    return sum([len(argument) for argument in command if isinstance(argument, bytes)])
