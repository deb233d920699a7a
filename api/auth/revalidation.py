"""Whether who was let in may stay: looked at every second, for what goes on longer than a request.

let in ──▶ held ──it ends by itself──▶ let go
             └──the credential is revoked, expires, or gets other rights──▶ ended from here
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager

from api.auth.authenticator import Gate
from api.observability.logging import get_logger
from storage.domain import limits
from storage.domain.access.permissions import Principal
from storage.domain.errors import MillstreamError

_log = get_logger("auth")

End = Callable[[], None]


class Standing:
    """Everything that goes on in this process, and as whom."""

    def __init__(self, gate: Gate, period_ms: int = limits.CREDENTIAL_CHECK_MS) -> None:
        self._gate = gate
        self._period_s = period_ms / limits.SECOND_MS
        self._held: dict[Principal, set[End]] = {}

    @contextmanager
    def held(self, principal: Principal, end: End) -> Generator[None]:
        """Call `end`, once, if the principal may not stay while the block runs."""
        self._held.setdefault(principal, set()).add(end)
        try:
            yield
        finally:
            self._let_go(principal, end)

    def _let_go(self, principal: Principal, end: End) -> None:
        ends = self._held.get(principal)
        if ends is not None:
            ends.discard(end)
            if not ends:
                del self._held[principal]

    async def run(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await asyncio.sleep(self._period_s)
            try:
                await self.look()
            except Exception:
                _log.exception("standing_check_failed")

    async def look(self) -> None:
        """End what may not stay. Whom nobody can ask about, since the database is away, stays until it is back."""
        for principal in list(self._held):
            try:
                holds = await self._gate.holds(principal)
            except MillstreamError:
                continue
            if not holds:
                for end in self._held.pop(principal, set()):
                    end()

    def watched(self, principal: Principal, pieces: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        """An answer that goes on, and comes to its end when its reader may not stay."""
        ends = principal.credential or principal.expires_ms
        return self._watched(principal, pieces) if ends else pieces

    async def _watched(
        self, principal: Principal, pieces: AsyncGenerator[bytes]
    ) -> AsyncGenerator[bytes]:
        task = asyncio.current_task()
        assert task is not None
        ended = False

        def end() -> None:
            nonlocal ended
            ended = True
            task.cancel()

        with self.held(principal, end):
            try:
                async for piece in pieces:
                    yield piece
            except asyncio.CancelledError:
                if not ended:
                    raise
                task.uncancel()
            finally:
                await pieces.aclose()
