"""Revalidation of credentials every second, for what lasts longer than a request.

admitted ──▶ registered ──it ends by itself──▶ released
                 └──the credential is revoked, expires, or gets other permissions──▶ ended from here
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager

from api.auth.authenticator import Authenticator
from api.observability.logging import get_logger
from storage.concurrency.periodic import periodic
from storage.domain import limits
from storage.domain.access.permissions import Principal
from storage.domain.errors import MillstreamError

_log = get_logger("auth")

End = Callable[[], None]


class SessionRevalidator:
    """Registry of the long-lived operations of this process, by principal."""

    def __init__(
        self, authenticator: Authenticator, period_ms: int = limits.CREDENTIAL_CHECK_MS
    ) -> None:
        self._authenticator = authenticator
        self._period_s = period_ms / limits.SECOND_MS
        self._registered: dict[Principal, set[End]] = {}

    @contextmanager
    def registered(self, principal: Principal, end: End) -> Generator[None]:
        """Call `end`, once, if the principal's credential becomes invalid while the block runs."""
        self._registered.setdefault(principal, set()).add(end)
        try:
            yield
        finally:
            self._unregister(principal, end)

    def _unregister(self, principal: Principal, end: End) -> None:
        ends = self._registered.get(principal)
        if ends is not None:
            ends.discard(end)
            if not ends:
                del self._registered[principal]

    async def run(self) -> None:
        """Revalidate periodically, until cancelled."""
        await periodic(self._period_s, self.revalidate, "revalidation", delay_first=True)

    async def revalidate(self) -> None:
        """End what is no longer permitted.

        A principal that cannot be checked, because the database is unreachable, stays until it is back.
        """
        for principal in list(self._registered):
            try:
                holds = await self._authenticator.is_still_valid(principal)
            except MillstreamError:
                continue
            except Exception:  # one principal's failure must not keep others admitted
                _log.exception("standing_check_failed", principal=principal.name)
                continue
            if not holds:
                for end in self._registered.pop(principal, set()):
                    end()

    def guarded(self, principal: Principal, pieces: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        """Wrap a streaming answer so that it ends when its reader's credential becomes invalid."""
        ends = principal.credential or principal.expires_ms
        return self._guarded(principal, pieces) if ends else pieces

    async def _guarded(
        self, principal: Principal, pieces: AsyncGenerator[bytes]
    ) -> AsyncGenerator[bytes]:
        task = asyncio.current_task()
        assert task is not None
        ended = False

        def end() -> None:
            nonlocal ended
            ended = True
            task.cancel()

        with self.registered(principal, end):
            try:
                async for piece in pieces:
                    yield piece
            except asyncio.CancelledError:
                if not ended:
                    raise
                task.uncancel()
            finally:
                await pieces.aclose()
