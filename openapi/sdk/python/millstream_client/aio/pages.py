"""Lists in pages."""

from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol, TypeVar

from millstream_client.aio.transport import AsyncTransport
from millstream_client.calls import Call

T = TypeVar("T")


class Page(Protocol[T]):
    """A page of a list; the cursor of the next one is null on the last page."""

    items: list[T]
    next_cursor: Any


async def all_pages(
    transport: AsyncTransport, ask: Callable[[str], Call[Any]]
) -> AsyncIterator[Any]:
    """Yield the items of all pages.

    `ask` makes the call for the page at a cursor; the first cursor is empty.
    """
    cursor = ""
    while True:
        page: Page[Any] = await transport.call(ask(cursor))
        for item in page.items:
            yield item
        if not page.next_cursor:
            return
        cursor = page.next_cursor
