"""Credit of a subscriber: the messages or records, and their bytes, that may be sent."""

import asyncio

from storage.domain import limits


class SubscriptionCredit:
    """Credit granted by the subscriber, and spent by what is sent to it.

    While there is some of both, one message more may be sent, also a large one: then its bytes are owed, and
    nothing follows before they are granted.
    """

    __slots__ = ("_news", "bytes", "messages")

    def __init__(self, messages: int, bytes_: int) -> None:
        self.messages = messages
        self.bytes = bytes_
        self._news: asyncio.Event | None = None

    @property
    def is_there(self) -> bool:
        """Return whether anything may be sent."""
        return self.messages > 0 and self.bytes > 0

    def grant(self, messages: int, bytes_: int) -> None:
        """Add credit, up to the maximum that may be granted in one call."""
        self.messages = min(self.messages + messages, limits.CREDIT_MESSAGES_MAX)
        self.bytes = min(self.bytes + bytes_, limits.CREDIT_BYTES_MAX)
        if self._news is not None and self.is_there:
            self._news.set()
            self._news = None

    def take(self, messages: int, bytes_: int) -> None:
        """Spend credit for what was sent."""
        self.messages -= messages
        self.bytes -= bytes_

    async def wait(self) -> None:
        """Wait until anything may be sent."""
        while not self.is_there:
            self._news = self._news or asyncio.Event()
            await self._news.wait()
