"""Lists that come in pages."""

from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol, TypeVar

from millstream_client.aio.transport import AsyncTransport
from millstream_client.calls import Call

T = TypeVar("T")


class Page(Protocol[T]):
    """A part of a list, and where the next one begins; null on the last."""

    items: list[T]
    next_cursor: Any


async def all_pages(
    transport: AsyncTransport, ask: Callable[[str], Call[Any]]
) -> AsyncIterator[Any]:
    """The items of all pages. `ask` makes the call of the page at a cursor; the first one's is empty."""
    cursor = ""
    while True:
        page: Page[Any] = await transport.call(ask(cursor))
        for item in page.items:
            yield item
        if not page.next_cursor:
            return
        cursor = page.next_cursor
