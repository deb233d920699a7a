"""Commands to the hot store."""

from collections.abc import Sequence

from storage.redis.scripts import Script

Argument = bytes | str | int
Command = tuple[Argument, ...]


def command_of(loaded: Script, keys: Sequence[bytes], *arguments: Argument) -> Command:
    """Return the command that runs a script which the server has loaded."""
    return (b"EVALSHA", loaded.sha, len(keys), *keys, *arguments)
