"""Base of the objects of a service: a name, and the transport of the calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from millstream_client.aio.transport import AsyncTransport
    from millstream_client.retries import Retries
from millstream_client.settings import Acknowledge


class AsyncResource:
    """An object of the service by its name, whether it exists or not."""

    def __init__(self, transport: AsyncTransport, name: str) -> None:
        self.transport = transport
        self.name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    def with_options(
        self,
        *,
        timeout_seconds: float | None = None,
        retries: Retries | None = None,
        acknowledge: Acknowledge | None = None,
    ) -> Self:
        """Return the same object whose calls have another time limit or other retries.

        `orders.with_options(timeout_seconds=2).send(order)` is one such call. `acknowledge`: see `AsyncMillstream.with_options`.
        """
        options = self.transport.with_options(timeout_seconds, retries, acknowledge)
        return type(self)(options, self.name)
