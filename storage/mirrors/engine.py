"""Mirror engine: definitions, progress, promotion. `consumers.mirrors` pulls the records."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from msgspec.structs import replace

from storage.access.secret_box import SecretBox
from storage.catalog.catalog import Catalog
from storage.catalog.definition_store import DefinitionRules, DefinitionStore
from storage.concurrency.leader_election import LeaderElection
from storage.concurrency.tasks import in_batches
from storage.domain import limits
from storage.domain.access.egress import Egress
from storage.domain.clock import Clock
from storage.domain.definitions import HIDDEN_VALUE, OTHER_HIDDEN_VALUE, next_version
from storage.domain.errors import (
    FenceMismatch,
    MillstreamError,
    MirrorNotFound,
    QueueNotFound,
    ShardClosed,
    StreamNotFound,
    ValidationFailed,
)
from storage.domain.mirrors.groups import MirroredGroup
from storage.domain.mirrors.mirror import MIRROR_FENCE, Mirror, MirrorSpec
from storage.domain.mirrors.offsets import OffsetChanges, OffsetTable
from storage.domain.mirrors.progress import (
    MirrorStatus,
    QueueProgress,
    ShardKey,
    ShardProgress,
)
from storage.domain.names import MirrorName, QueueName, StreamName, new_log_id
from storage.mirrors.secrets import MirrorSecrets
from storage.postgres.database import Database
from storage.postgres.repositories.leases import LeaseRows
from storage.postgres.repositories.mirrors import LockedMirror, MirrorProgressRows, MirrorRows
from storage.queues.copies import QueueCopies
from storage.streams.engine import Streams
from storage.streams.read import RecordReader

_NO_OFFSETS: Mapping[ShardKey, OffsetChanges] = {}

MirrorStore = DefinitionStore[MirrorName, MirrorSpec, Mirror, LockedMirror]


class MirrorLag(NamedTuple):
    """Lag of a mirror that pulls, and its failures.

    `silence_ms`: how long ago the origin last listed its streams.
    """

    name: MirrorName
    lag_ms: int
    lag_records: int
    silence_ms: int
    failures: tuple[str, ...]

    @property
    def labels(self) -> tuple[str, str]:
        """Its namespace and name."""
        return self.name.namespace, self.name.name


class Mirrors:
    """The mirrors of a deployment.

    Every verb raises MirrorNotFound for a mirror that does not exist, and SecretsOff in a deployment that cannot store
    secrets.
    """

    def __init__(
        self,
        *,
        database: Database,
        streams: Streams,
        reader: RecordReader,
        queue_copies: QueueCopies,
        catalog: Catalog,
        box: SecretBox,
        egress: Egress,
        clock: Clock,
    ) -> None:
        self._rows = MirrorRows(database)
        self._progress = MirrorProgressRows(database)
        rows_with_keys = MirrorRows(database, MirrorSecrets(box))
        self._store: MirrorStore = DefinitionStore(self._rows, _RULES, clock)
        self._with_keys: MirrorStore = DefinitionStore(
            rows_with_keys, _RULES, clock, check=partial(_check_url, egress)
        )
        self._leases = LeaseRows(database, clock)
        self._streams = streams
        self._reader = reader
        self._queue_copies = queue_copies
        self._catalog = catalog
        self._clock = clock
        self.put = self._with_keys.put
        """Create the mirror or replace its configuration; what it has copied stays."""
        self.get = self._store.get
        """Return the mirror without its key."""
        self.get_with_key = self._with_keys.get
        self.pause = self._store.pause
        """Pause the mirror, or resume it where it was."""
        self.list_mirrors = self._store.page

    async def delete(self, name: MirrorName, *, if_match: int | None = None) -> Mirror:
        """Delete the mirror; its streams stay. Return its last definition."""
        async with self._store.changing(name, if_match) as (locked, mirror):
            await self._retire_producers(mirror)  # while a retry still finds its name
            await locked.delete(mirror, self._clock.now_ms())
            await self._progress.delete_lease(locked.session, lease_of(mirror))
        return mirror

    async def promote(self, name: MirrorName) -> Mirror:
        """Make the mirror's streams independent of the origin: it never pulls again.

        A puller that does not know it yet is fenced: its producers are retired. Streams that a promotion elsewhere had fenced
        accept records again. Again for one that was promoted, in case that was interrupted.
        """
        async with self._store.changing(name) as (locked, mirror):
            promoted = mirror
            if mirror.promoted_at_ms is None:
                now_ms = self._clock.now_ms()
                promoted = next_version(mirror, now_ms, promoted_at_ms=now_ms)
                await locked.update(promoted)
        await self._retire_producers(promoted)
        status = await self.status(promoted)
        for stream in {shard.stream for shard in status.shards}:
            await self._lift_fence(StreamName(stream, name.namespace))
        for queue in status.queues:
            await self._release(QueueName(queue.queue, name.namespace), paused=queue.paused)
        return promoted

    async def _release(self, queue: QueueName, *, paused: bool) -> None:
        """Let a copy of a queue take messages, and deliver them unless the queue there is paused."""
        with suppress(QueueNotFound):
            if await self._queue_copies.end(queue):
                await self._catalog.pause_queue(queue, paused=paused)

    async def _lift_fence(self, stream: StreamName) -> None:
        """Let any writer append to the shards that only mirrors may append to."""
        for _ in range(limits.REPAIR_ATTEMPTS_MAX):
            try:
                states = await self._reader.shards(stream)
            except StreamNotFound:
                return
            fenced = [one.shard.index for one in states if one.fenced and one.shard.is_open]
            try:
                for shard in fenced:
                    with suppress(FenceMismatch):  # another writer's
                        await self._streams.set_fence(stream, shard, "", MIRROR_FENCE)
            except ShardClosed:  # its children have the fence
                continue
            return

    async def _retire_producers(self, mirror: Mirror) -> None:
        shards = (await self.status(mirror)).shards
        for stream, of_stream in groupby(shards, attrgetter("stream")):
            await self._retire(mirror, stream, list(of_stream))

    async def _retire(self, mirror: Mirror, stream: str, shards: Sequence[ShardProgress]) -> None:
        producers = [mirror.producer_of(one.origin_id, one.shard) for one in shards]
        target = StreamName(stream, mirror.name.namespace)
        await self._streams.retire_writers(target, producers)

    def now_ms(self) -> int:
        """Return the time that lags refer to."""
        return self._clock.now_ms()

    async def lags(self, namespace: str | None = None) -> list[MirrorLag]:
        """Return the lag of each mirror that is neither paused nor promoted.

        With `namespace`, of that one only.
        """
        mirrors = [
            one
            for one in await self.all()
            if one.is_active and namespace in {None, one.name.namespace}
        ]
        statuses = await in_batches(mirrors, self.status, limits.MAINTENANCE_CONCURRENCY_MAX)
        now_ms = self.now_ms()
        return [
            MirrorLag(
                one.name,
                status.lag_ms(now_ms),
                status.lag_records,
                status.silence_ms(now_ms),
                status.failures,
            )
            for one, status in zip(mirrors, statuses, strict=True)
        ]

    # For pullers

    async def all(self) -> list[Mirror]:
        """Return the mirrors of every namespace, without keys."""
        return [mirror async for mirror in self._rows.every()]

    def election(self, mirror: Mirror, holder: str) -> LeaderElection:
        """Return a candidate for the lease of a mirror, which one puller has."""
        return LeaderElection(self._leases, lease_of(mirror), holder)

    async def status(self, mirror: Mirror) -> MirrorStatus:
        """Return how far the mirror is."""
        return await self._progress.read(mirror.mirror_id)

    async def offsets(self, mirror: Mirror) -> dict[ShardKey, OffsetTable]:
        """Return the offset tables of the mirror's shards."""
        stored = await self._progress.read_offsets(mirror.mirror_id)
        return {key: OffsetTable(entries) for key, entries in stored.items()}

    async def report(
        self,
        mirror: Mirror,
        shards: Sequence[ShardProgress],
        failure: str,
        offsets: Mapping[ShardKey, OffsetChanges] = _NO_OFFSETS,
        *,
        listed_at_ms: int | None = None,
    ) -> None:
        """Store how far the mirror is on some shards, with changes of their offset tables.

        `failure`: why it cannot list streams or groups, if so; `listed_at_ms`: when it last could list streams. A shard is reported before its first record is added: a promotion retires the producers of reported shards. Raises
        MirrorNotFound if the mirror was deleted or promoted meanwhile.
        """
        if not await self._progress.write(mirror.mirror_id, shards, failure, offsets, listed_at_ms):
            raise _ended(mirror)

    async def report_groups(
        self, mirror: Mirror, groups: Sequence[MirroredGroup], gone: Collection[str] = ()
    ) -> None:
        """Store groups of the mirror, each before it is moved, and drop those that are `gone`.

        Raises MirrorNotFound if the mirror was deleted or promoted meanwhile.
        """
        if not await self._progress.write_groups(mirror.mirror_id, groups, gone):
            raise _ended(mirror)

    async def report_queues(self, mirror: Mirror, queues: Sequence[QueueProgress]) -> None:
        """Store how far the mirror is on some queues, each before its first message is added.

        Raises MirrorNotFound if the mirror was deleted or promoted meanwhile.
        """
        if not await self._progress.write_queues(mirror.mirror_id, queues):
            raise _ended(mirror)

    async def other_mirror_of(self, mirror: Mirror, queue: str) -> str | None:
        """Return the name of another mirror of the namespace that copies a queue, if there is one."""
        return await self._progress.other_mirror_of(mirror, queue)

    async def drop_shard(self, mirror: Mirror, shard: ShardProgress) -> None:
        """Forget a shard that the origin no longer has, with its producer if it has ended."""
        if shard.ended:
            await self._retire(mirror, shard.stream, [shard])
        await self._progress.delete(mirror.mirror_id, shard)


def lease_of(mirror: Mirror) -> str:
    """Return the name of a mirror's lease."""
    return f"mirror/{mirror.mirror_id}"


async def _check_url(egress: Egress, _: MirrorName, spec: MirrorSpec) -> None:
    """Raise ValidationFailed for a URL that this deployment sends no requests to."""
    egress.check_url(spec.url, "/from/url")
    if "?" in spec.url:
        raise ValidationFailed.at("/from/url", "The URL cannot have a query")


def _ended(mirror: Mirror) -> MillstreamError:
    return MirrorNotFound(f"Mirror '{mirror.name.name}' was deleted or promoted.")


def _not_found(name: MirrorName) -> MillstreamError:
    return MirrorNotFound(f"Mirror '{name.name}' does not exist.")


def _create(name: MirrorName, spec: MirrorSpec, now_ms: int) -> Mirror:
    return Mirror(
        name=name,
        mirror_id=new_log_id(),
        spec=spec if spec.key is not None else replace(spec, key=""),
        version=1,
        created_at_ms=now_ms,
        changed_at_ms=now_ms,
    )


def _merge(current: MirrorSpec, spec: MirrorSpec) -> MirrorSpec:
    """Keep the present key where none is given."""
    return spec if spec.key is not None else replace(spec, key=current.key)


def _redact(before: Mirror, after: MirrorSpec) -> Mirror:
    """Return `before` with a marker in place of its key."""
    if not before.spec.key:
        return before
    marker = HIDDEN_VALUE if before.spec.key == after.key else OTHER_HIDDEN_VALUE
    return replace(before, spec=replace(before.spec, key=marker))


_RULES: DefinitionRules[MirrorName, MirrorSpec, Mirror] = DefinitionRules(
    not_found=_not_found, create=_create, merge=_merge, is_pausable=True, redact=_redact
)
