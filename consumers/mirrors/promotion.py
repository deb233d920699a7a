"""Promotion of a mirror: fences the origin, copies its last records, and ends the copying.

    fence each shard and queue of the origin ──▶ copy up to the ends that they have then ──▶ retire the producers
         │                                  │                                      lift the fences of the copies
         │                                  └── not in time: not promoted, to be repeated
         └── unreachable, refused: go on without it

The fence is the shard's fencing token, which the hot store checks in each append, and children inherit. All mirrors have the
same: so a mirror in the other direction may write what is fenced, and its promotion lifts it.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from enum import StrEnum
from typing import NamedTuple

from consumers.mirrors.origin import OriginClient, OriginFailed
from consumers.mirrors.pull_times import MirrorTimes
from consumers.mirrors.puller import Puller
from consumers.webhooks.ssrf_guard import Resolve, resolve
from storage.bootstrap import Storage
from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.access.egress import Egress
from storage.domain.clock import Clock, SystemClock
from storage.domain.errors import MillstreamError, SecretsOff, SecretUnreadable
from storage.domain.mirrors.mirror import MIRROR_FENCE, Mirror
from storage.domain.mirrors.progress import ShardKey
from storage.domain.names import MirrorName

_CLOCK = SystemClock()
_TIMES = MirrorTimes()
_FORBIDDEN = frozenset({401, 403})
_CONFLICT = 409


class OriginOutcome(StrEnum):
    """Effect of a promotion on the origin."""

    FENCED = "fenced"
    """Read-only for what was mirrored."""

    UNREACHABLE = "unreachable"
    """Not reached, or not for all of it: its writers may go on."""

    REFUSED = "refused"
    """The mirror's key may not do it: its writers may go on."""

    IGNORED = "ignored"
    """Not asked for: its writers go on."""


class _FencedOrigin(NamedTuple):
    """The ends of the shards of the origin that are fenced, and the queues that are."""

    ends: dict[ShardKey, int]
    queues: set[str]


class Promotion(NamedTuple):
    """A mirror, which is promoted unless records are missing, and what became of its origin."""

    mirror: Mirror
    origin: OriginOutcome


class MirrorPromoter:
    """Promoter of mirrors, in the process that receives the request.

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
        self._storage = storage
        self._egress = Egress.of(allow)
        self._clock = clock
        self._resolver = resolver
        self._times = times

    async def promote(
        self, name: MirrorName, *, fence: bool, force: bool, wait_ms: int
    ) -> Promotion:
        """Fence the origin, copy what is left of it within `wait_ms`, and promote the mirror.

        Without `fence` the origin is not touched; with `force` the mirror is promoted whatever is left. A mirror that was
        promoted only fences its origin. Raises MirrorNotFound.
        """
        mirror, can_read = await self._with_key(name)
        origin, fenced = OriginOutcome.IGNORED, _FencedOrigin({}, set())
        if fence:
            origin = OriginOutcome.REFUSED
            if can_read:
                origin = await self._fence(mirror, fenced)
        is_drained = (
            force or origin is not OriginOutcome.FENCED or mirror.promoted_at_ms is not None
        )
        if not is_drained and not await self._drain(mirror, fenced, wait_ms):
            return Promotion(mirror, origin)
        return Promotion(await self._storage.mirrors.promote(name), origin)

    async def _with_key(self, name: MirrorName) -> tuple[Mirror, bool]:
        """Return the mirror, and whether its key can be decrypted."""
        try:
            return await self._storage.mirrors.get_with_key(name), True
        except (SecretsOff, SecretUnreadable):
            return await self._storage.mirrors.get(name), False

    def _client(self, mirror: Mirror) -> OriginClient:
        return OriginClient(mirror.spec, self._egress, self._resolver)

    async def _fence(self, mirror: Mirror, fenced: _FencedOrigin) -> OriginOutcome:
        """Fence the origin, and note what is fenced. The ends of shards are final if all is."""
        client, spec = self._client(mirror), mirror.spec
        try:
            async with asyncio.timeout(limits.MIRROR_FENCE_MS_MAX / limits.SECOND_MS):
                if spec.queues:
                    async for queue in client.queues():
                        if spec.matches_queue(queue["name"]):
                            await client.fence_queue(queue["name"], MIRROR_FENCE)
                            fenced.queues.add(queue["name"])
                if spec.streams:
                    async for stream in client.streams():
                        if spec.matches(stream["name"]):
                            fenced.ends.update(await _fence_stream(client, stream["name"]))
        except (OriginFailed, TimeoutError) as failed:
            is_refused = isinstance(failed, OriginFailed) and failed.status in _FORBIDDEN
            return OriginOutcome.REFUSED if is_refused else OriginOutcome.UNREACHABLE
        finally:
            await client.close()
        return OriginOutcome.FENCED

    async def _drain(self, mirror: Mirror, fenced: _FencedOrigin, wait_ms: int) -> bool:
        """Copy up to the ends, and what is in the queues; return False if that takes longer.

        By a puller of its own, beside that of the background process, if there is one: it may be away, or the mirror paused.
        """
        puller = Puller(mirror, self._client(mirror), self._storage, self._clock, self._times)
        pulling = asyncio.create_task(puller.run())
        try:
            async with asyncio.timeout(wait_ms / limits.SECOND_MS):
                await puller.wait_until_copied(fenced.ends)
                await puller.wait_until_queues_are_copied(fenced.queues)
        except TimeoutError:
            return False
        else:
            with suppress(OriginFailed, MillstreamError):  # then groups are where they were before
                await puller.follow_groups()
            return True
        finally:
            await end(pulling)


async def _fence_stream(client: OriginClient, stream: str) -> dict[ShardKey, int]:
    """Fence the open shards of a stream, and the children of those that are closed meanwhile."""
    fenced: set[int] = set()
    for _ in range(limits.REPAIR_ATTEMPTS_MAX):
        origin_id, shards = await client.shards(stream)
        unfenced = [one.index for one in shards if one.open and one.index not in fenced]
        if not unfenced:
            return {ShardKey(stream, origin_id, one.index): one.next for one in shards}
        for shard in unfenced:
            try:
                await client.fence(stream, shard, MIRROR_FENCE)
            except OriginFailed as failed:
                if failed.status != _CONFLICT:
                    raise
            else:
                fenced.add(shard)
    raise OriginFailed(f"The shards of stream '{stream}' of the origin change all the time")
