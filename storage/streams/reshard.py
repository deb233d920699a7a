"""Crash-safe splits and merges of shards while records are written and read.

    rows of the children        Postgres; the parents still take records
    logs of the children        hot store, empty
    the parents are closed      hot store, each between two appends: `closed` holds ids and ranges of its
                                children, so that the next append is sent to them
    the parents' rows           Postgres, announced: every process routes to the children immediately

A process that finds a reshard half done continues with the remaining steps; each is harmless when done twice.
An advisory lock in Postgres lets one process at a time reshard a stream and ends with that process, so
an interrupted reshard is continued by the next reshard of the stream, or by the sweep.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from enum import Enum
from functools import partial
from typing import TypeVar

import attrs

from storage.catalog.catalog import Catalog
from storage.domain import limits
from storage.domain.errors import (
    FenceMismatch,
    OutcomeUnknown,
    ShardClosed,
    StorageBusy,
    StorageFull,
    StorageUnavailable,
    StreamBusy,
    StreamNotFound,
    StreamReadOnly,
    ValidationFailed,
)
from storage.domain.log.address import LogAddress
from storage.domain.names import StreamName
from storage.domain.streams.reshard_plan import Change, merge_of, round_towards, split_of
from storage.domain.streams.stream import Shard, Stream
from storage.domain.streams.topic_spec import SCOPE_REQUIRED
from storage.hot_store.errors import LogNotReady
from storage.hot_store.log_store import LogStore
from storage.log.provisioner import LogDeleted, LogProvisioner
from storage.postgres.advisory_lock import try_advisory_lock
from storage.postgres.database import Database

T = TypeVar("T")

Plan = Callable[[Stream], Sequence[Change]]


class _FenceTransfer(Enum):
    """The fence that a parent passes on to its children.

    After the first parent was closed, they may have records, and a fence of their own.
    """

    ANY = "any"
    SET = "set"
    NONE = "none"


@attrs.define(eq=False, slots=False)
class Resharder:
    """Coordinator of shard changes, one change at a time for each stream.

    Every verb raises StreamNotFound, StreamReadOnly for a queue's view, StreamBusy while another reshard of the stream is
    in progress, StorageUnavailable or StorageBusy when nothing happened, and OutcomeUnknown when it began and could not
    be finished: then a sweep finishes it.
    """

    _hot: LogStore
    _catalog: Catalog
    _provisioner: LogProvisioner
    _database: Database
    _reshard_slots: asyncio.Semaphore = attrs.field(
        factory=lambda: asyncio.Semaphore(limits.RESHARD_CONCURRENCY_MAX), init=False
    )
    _log_slots: asyncio.Semaphore = attrs.field(
        factory=lambda: asyncio.Semaphore(limits.RESHARD_LOG_CONCURRENCY_MAX), init=False
    )

    async def split(self, name: StreamName, shard: int, at_hash_key: int) -> Stream:
        """Close a shard and open two in its place; keys from `at_hash_key` on go to the second.

        Writing and reading continue during the split. Returns the stream with its new shards. Raises ShardNotFound;
        ValidationFailed for a shard that is closed, for a key that is not above the shard's first plus one
        and below its last, and beyond SHARDS_MAX open shards; StreamBusy while another reshard of the
        stream is in progress; OutcomeUnknown when it has begun and a sweep must finish it.
        """
        return await self._change(name, lambda stream: [split_of(stream, shard, at_hash_key)])

    async def merge(self, name: StreamName, first: int, second: int) -> Stream:
        """Close two shards with adjacent hash-key ranges, and open one in their place.

        The two may be given in either order; `first` becomes the first parent. Raises what `split` does, and ValidationFailed
        also for shards that are not adjacent.
        """
        return await self._change(name, lambda stream: [merge_of(stream, first, second)])

    async def _change(self, name: StreamName, plan: Plan) -> Stream:
        async with self._only_one(name):
            stream = await self._step(name, _nothing)
            _check_has_several(stream)
            plan(stream)
            if stream.shards_target is not None:
                await self._catalog.set_shard_target(name, None)
            return await self._step(name, plan)

    async def set_shard_count(self, name: StreamName, count: int) -> Stream:
        """Split and merge until `count` open shards divide the hash-key range equally.

        A shard has at most two parents, so this takes several rounds, whose intermediate shards are closed
        again immediately. Raises what `split` does, except ShardNotFound; ValidationFailed unless 1 <= count <= SHARDS_MAX, and
        for several shards of a topic that has one.
        """
        if not 1 <= count <= limits.SHARDS_MAX:
            raise ValidationFailed.at(
                "/shards", f"must be 1 to {limits.SHARDS_MAX}", "out_of_range"
            )
        async with self._only_one(name):
            stream = await self._step(name, _nothing)
            if count > 1:
                _check_has_several(stream)
            await self._catalog.set_shard_target(name, count)
            with _begun():
                return await self._converge(name, count)

    async def apply(self, name: StreamName, changes: Sequence[Change]) -> Stream:
        """Apply those of the changes whose shards are still open."""

        def remaining_changes(stream: Stream) -> list[Change]:
            return [one for one in changes if set(one.parents) <= set(stream.open_shards)]

        return await self._change(name, remaining_changes)

    async def finish(self, name: StreamName) -> bool:
        """Finish a reshard that a crash left half done; return whether there was one.

        Raises StreamBusy while another process is finishing it.
        """
        async with self._only_one(name):
            left = await self._catalog.fresh_stream(name)
            await self._step(name, _nothing)
            if left.shards_target is not None:
                await self._converge(name, left.shards_target)
            return bool(left.opening or left.shards_target)

    async def _converge(self, name: StreamName, count: int) -> Stream:
        """Run rounds of splits and merges until the stream has `count` equal shards."""
        stream = await self._catalog.fresh_stream(name)
        while round_towards(stream.open_shards, count):
            stream = await self._step(
                name, lambda current: round_towards(current.open_shards, count)
            )
        return await self._catalog.set_shard_target(name, None)

    @asynccontextmanager
    async def _only_one(self, name: StreamName) -> AsyncGenerator[None]:
        stream = await self._catalog.fresh_stream(name)
        if stream.is_view:
            raise StreamReadOnly
        async with (
            self._reshard_slots,
            try_advisory_lock(self._database, f"reshard:{stream.stream_id}") as mine,
        ):
            if not mine:
                raise StreamBusy
            yield

    async def _step(self, name: StreamName, plan: Plan) -> Stream:
        """Apply one change, or the rest of an unfinished one; return the stream after it."""
        stream = await self._catalog.open_children(name, plan)
        if not stream.opening:
            return stream
        with _begun(), _not_found(name):
            await self._make_logs(stream)
            await self._close_logs(stream)
            await self._catalog.close_parents(name, stream.opening)
        return await self._catalog.fresh_stream(name)

    async def _make_logs(self, stream: Stream) -> None:
        await self._each(stream, stream.opening, self._hot.extent)

    async def _close_logs(self, stream: Stream) -> None:
        families = {child.parents for child in stream.opening}
        await asyncio.gather(*(self._close_family(stream, parents) for parents in families))

    async def _close_family(self, stream: Stream, parents: tuple[int, ...]) -> None:
        """Close the one or two parents; their children get the first fence that one of them has."""
        fence = ""
        for nth, index in enumerate(parents):
            giving = (
                _FenceTransfer.ANY
                if nth == 0
                else _FenceTransfer.SET
                if not fence
                else _FenceTransfer.NONE
            )
            fence = await self._close_log(stream, stream.shard(index), giving) or fence

    async def ensure_closed(self, stream: Stream, shard: Shard) -> None:
        """Close a shard whose children are being opened, ahead of the process that reshards it.

        Safe, as the step is harmless when done twice.
        """
        children = [one for one in (*stream.shards, *stream.opening) if shard.index in one.parents]
        for parents in {child.parents for child in children}:
            await self._close_family(stream, parents)

    async def reclose(self, stream: Stream, shard: Shard) -> None:
        """Close the log of a closed shard again after its store lost the mark that it is closed."""
        await self._close_log(stream, shard, _FenceTransfer.NONE)

    async def _close_log(self, stream: Stream, shard: Shard, giving: "_FenceTransfer") -> str:
        """Close a shard's log once its children have its fence; return that fence."""
        children = [
            child for child in (*stream.shards, *stream.opening) if shard.index in child.parents
        ]
        [(closed, fence)] = await self._each(stream, [shard], partial(self._close, (), ""))
        while not closed:
            if giving is _FenceTransfer.ANY or (giving is _FenceTransfer.SET and fence):
                await self._each(stream, children, partial(self._inherit_fence, fence))
            [(closed, fence)] = await self._each(
                stream, [shard], partial(self._close, children, fence)
            )
        return fence

    async def _close(
        self, children: Sequence[Shard], fence: str, log: LogAddress
    ) -> tuple[bool, str]:
        return await self._hot.close(log, children, fence, self._provisioner.store_epoch)

    async def _inherit_fence(self, fence: str, log: LogAddress) -> None:
        with suppress(ShardClosed, FenceMismatch):  # a later one is a topic's next version
            await self._hot.set_fence(log, fence, None, self._provisioner.store_epoch)

    async def _each(
        self,
        stream: Stream,
        shards: Sequence[Shard],
        work: Callable[[LogAddress], Awaitable[T]],
    ) -> list[T]:
        async def do(shard: Shard) -> T:
            log = LogAddress(stream.name.namespace, shard.log_id)
            async with self._log_slots:
                return await self._provisioner.with_repair(log, lambda: work(log))

        return await asyncio.gather(*(do(shard) for shard in shards))


def _check_has_several(stream: Stream) -> None:
    """Raise ValidationFailed for a topic whose deduplication ids are all in one log."""
    if stream.spec.topic is not None and stream.spec.topic.has_one_shard:
        raise ValidationFailed.at("/shards", SCOPE_REQUIRED, "not_allowed")


def _nothing(_: Stream) -> Sequence[Change]:
    return ()


@contextmanager
def _begun() -> Iterator[None]:
    """Turn errors from here on into outcomes that do not claim that nothing happened."""
    try:
        yield
    except (StorageUnavailable, StorageBusy, StorageFull) as error:
        detail = f"The reshard has started and will be completed. {error.detail}"
        raise OutcomeUnknown(detail) from None


@contextmanager
def _not_found(name: StreamName) -> Iterator[None]:
    try:
        yield
    except (LogNotReady, LogDeleted):
        raise StreamNotFound(f"Stream '{name.name}' does not exist.") from None
