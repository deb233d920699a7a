# Generated from aio/pages.py by `make sdk`; changes are lost.
"""Lists in pages."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

from millstream_client.calls import Call
from millstream_client.sync.transport import Transport

T = TypeVar("T")


class Page(Protocol[T]):
    """A page of a list; the cursor of the next one is null on the last page."""

    items: list[T]
    next_cursor: Any


def all_pages(transport: Transport, ask: Callable[[str], Call[Any]]) -> Iterator[Any]:
    """Yield the items of all pages.

    `ask` makes the call for the page at a cursor; the first cursor is empty.
    """
    cursor = ""
    while True:
        page: Page[Any] = transport.call(ask(cursor))
        for item in page.items:
            yield item
        if not page.next_cursor:
            return
        cursor = page.next_cursor
