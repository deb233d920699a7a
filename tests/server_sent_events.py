"""A reader of server-sent events."""

import json
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any, NamedTuple


class Event(NamedTuple):
    """An event as a browser delivers it."""

    kind: str
    id: str
    data: Any


class _Parser:
    """Parse lines as in the HTML standard: events have data, and ids persist."""

    def __init__(self) -> None:
        self._kind, self._id = "message", ""
        self._data: list[str] = []

    def take(self, line: str) -> Event | None:
        """Return the event that this line completes, if any."""
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
    """Yield the events of a response; an incomplete event is discarded with its id."""
    parser = _Parser()
    for line in lines:
        if (event := parser.take(line)) is not None:
            yield event


async def events_as_they_come(lines: AsyncIterable[str]) -> AsyncIterator[Event]:
    """Yield events as in `events_of`, asynchronously."""
    parser = _Parser()
    async for line in lines:
        if (event := parser.take(line)) is not None:
            yield event
