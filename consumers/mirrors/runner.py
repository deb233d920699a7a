"""Runner of mirrors: a candidate for the lease of each, which pulls while it has it."""

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Iterable
from contextlib import suppress

from consumers.mirrors.origin import OriginClient
from consumers.mirrors.pull_times import MirrorTimes, PullBackoff
from consumers.mirrors.puller import Puller
from consumers.webhooks.ssrf_guard import Resolve, resolve
from storage.bootstrap import Storage
from storage.concurrency.periodic import periodic
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.access.egress import Egress
from storage.domain.clock import Clock, SystemClock
from storage.domain.errors import MillstreamError
from storage.domain.mirrors.mirror import Mirror

logger = logging.getLogger(__name__)

_CLOCK = SystemClock()
_TIMES = MirrorTimes()


class MirrorRunner:
    """Puller of the mirrors that this process has the leases of, until it is cancelled.

    `allow`: the destinations allowed for outbound requests, in the syntax of the settings.
    """

    def __init__(
        self,
        storage: Storage,
        allow: Iterable[str],
        *,
        clock: Clock = _CLOCK,
        resolver: Resolve = resolve,
        times: MirrorTimes = _TIMES,
    ) -> None:
        self._times = times
        self._holder = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._storage = storage
        self._egress = Egress.of(allow)
        self._clock = clock
        self._resolver = resolver
        self._candidates: dict[tuple[str, int], asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Pull until cancelled; then release every lease."""
        try:
            await periodic(self._times.reload_ms / limits.SECOND_MS, self._reload, "mirrors")
        finally:
            await end(*self._candidates.values())

    async def _reload(self) -> int:
        """Stop what was changed, paused, promoted or deleted, and start what is new."""
        mirrors = {
            (one.mirror_id, one.version): one
            for one in await self._storage.mirrors.all()
            if one.is_active
        }
        obsolete = [key for key in self._candidates if key not in mirrors]
        await end(*[self._candidates.pop(key) for key in obsolete])
        for key, mirror in mirrors.items():
            if key not in self._candidates:
                self._candidates[key] = asyncio.create_task(self._stand(mirror))
        return len(mirrors)

    async def _stand(self, mirror: Mirror) -> None:
        """Stand for the lease of a mirror, again whatever ends its puller."""

        async def lead(_: int) -> None:
            await self._pull(mirror)

        backoff = PullBackoff(self._times.backoff_ms)
        while True:
            try:
                await self._storage.mirrors.election(mirror, self._holder).run(lead)
            except MillstreamError as error:
                facts = {"mirror": str(mirror.name), "reason": error.detail}
                logger.warning("mirror_deferred", extra=facts)
                with suppress(MillstreamError):
                    await self._storage.mirrors.report(mirror, (), error.detail)
            except Exception:  # it must not keep other mirrors from pulling
                logger.exception("mirror_failed", extra={"mirror": str(mirror.name)})
            await backoff.pause()

    async def _pull(self, mirror: Mirror) -> None:
        with_key = await self._storage.mirrors.get_with_key(mirror.name)
        client = OriginClient(with_key.spec, self._egress, self._resolver)
        await Puller(with_key, client, self._storage, self._clock, self._times).run()
