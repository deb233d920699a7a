# Generated from aio/pages.py by `make sdk`; changes are lost.
"""Lists that come in pages."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

from millstream_client.calls import Call
from millstream_client.sync.transport import Transport

T = TypeVar("T")


class Page(Protocol[T]):
    """A part of a list, and where the next one begins; null on the last."""

    items: list[T]
    next_cursor: Any


def all_pages(transport: Transport, ask: Callable[[str], Call[Any]]) -> Iterator[Any]:
    """The items of all pages. `ask` makes the call of the page at a cursor; the first one's is empty."""
    cursor = ""
    while True:
        page: Page[Any] = transport.call(ask(cursor))
        for item in page.items:
            yield item
        if not page.next_cursor:
            return
        cursor = page.next_cursor
