"""Reading server-sent events."""

import json
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any, NamedTuple


class Event(NamedTuple):
    """What a browser hands on."""

    kind: str
    id: str
    data: Any


class _Parser:
    """Lines become events as the HTML standard has it: an event is what has data, and an id stays until the next one."""

    def __init__(self) -> None:
        self._kind, self._id = "message", ""
        self._data: list[str] = []

    def take(self, line: str) -> Event | None:
        """The event that this line ends, if it does."""
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        ended = None
        if not line:
            if self._data:
                ended = Event(self._kind, self._id, json.loads("\n".join(self._data)))
            self._kind, self._data = "message", []
        elif name == "event":
            self._kind = value
        elif name == "id":
            self._id = value
        elif name == "data":
            self._data.append(value)
        return ended


def events_of(lines: Iterable[str]) -> Iterator[Event]:
    """The events of an answer. One that is not whole is none, and its id does not count."""
    parser = _Parser()
    for line in lines:
        if (event := parser.take(line)) is not None:
            yield event


async def events_as_they_come(lines: AsyncIterable[str]) -> AsyncIterator[Event]:
    """As events_of."""
    parser = _Parser()
    async for line in lines:
        if (event := parser.take(line)) is not None:
            yield event
