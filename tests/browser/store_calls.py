"""Counting of calls to the stores."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from redis.asyncio.connection import AbstractConnection
from sqlalchemy import Engine, event

from storage.redis.transport import connection_lane


@dataclass
class StoreCalls:
    """Commands to the hot store, and statements to Postgres."""

    commands: int = 0
    statements: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Commands and statements together."""
        return self.commands + len(self.statements)

    def __str__(self) -> str:
        return f"{self.commands} commands, {len(self.statements)} statements"


@contextmanager
def store_calls() -> Iterator[StoreCalls]:
    """Count the store calls of this process within the block, including background tasks."""
    counted = StoreCalls()
    packed, send_command = connection_lane.packed, AbstractConnection.send_command

    def counting_packed(commands: Any) -> list[bytes]:
        counted.commands += len(commands)
        return packed(commands)

    async def counting_send(self: AbstractConnection, *arguments: Any, **more: Any) -> None:
        counted.commands += 1
        await send_command(self, *arguments, **more)

    def executed(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        counted.statements.append(statement)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection_lane, "packed", counting_packed)
        patch.setattr(AbstractConnection, "send_command", counting_send)
        event.listen(Engine, "before_cursor_execute", executed)
        try:
            yield counted
        finally:
            event.remove(Engine, "before_cursor_execute", executed)
