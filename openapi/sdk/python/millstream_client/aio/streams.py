"""Streams: configuration, records, and shards."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Unpack

from millstream_client import records as wire
from millstream_client.aio.definitions import create
from millstream_client.aio.following import AsyncFollowing
from millstream_client.aio.resources import AsyncResource
from millstream_client.aio.subscriptions import AsyncSubscription
from millstream_client.batches import batches
from millstream_client.conversing import BYTES_DEFAULT, MESSAGES_DEFAULT
from millstream_client.core.api.archives.flush_archive import flush_archive
from millstream_client.core.api.archives.get_archive import get_archive
from millstream_client.core.api.streams.change_stream import change_stream
from millstream_client.core.api.streams.delete_stream import delete_stream
from millstream_client.core.api.streams.get_latest_record import get_latest_record
from millstream_client.core.api.streams.get_stream import get_stream
from millstream_client.core.api.streams.get_stream_load import get_stream_load
from millstream_client.core.api.streams.list_shards import list_shards
from millstream_client.core.api.streams.put_fence import put_fence
from millstream_client.core.api.streams.put_stream import put_stream
from millstream_client.core.api.streams.reshard_stream import reshard_stream
from millstream_client.core.api.streams.truncate_shard import truncate_shard
from millstream_client.core.models.fence_config import FenceConfig
from millstream_client.core.models.reshard import Reshard
from millstream_client.core.models.stream_patch import StreamPatch
from millstream_client.core.models.stream_stored import StreamStored
from millstream_client.core.models.truncate import Truncate
from millstream_client.core.types import UNSET
from millstream_client.errors import ItemRefused, PartlyRefused
from millstream_client.messages import only
from millstream_client.records import Appended, NewRecord, ShardRead, Start, StreamRead
from millstream_client.repeating import Remaining
from millstream_client.starting import Plan

if TYPE_CHECKING:
    from millstream_client.core.models.record_out import RecordOut
    from millstream_client.core.models.shard_load_out import ShardLoadOut
    from millstream_client.core.models.shard_out import ShardOut
    from millstream_client.core.models.stream_out import StreamOut
    from millstream_client.core.params import StreamConfigParams, StreamPatchParams
    from millstream_client.gaps import OnGap


class AsyncStream(AsyncResource, AsyncFollowing):
    """A stream, whether it exists or not. Raises MillstreamError.

    Fields of the configuration have the names of the REST API: `shards`, `retention_seconds`, …
    """

    # ── Configuration ──

    async def create(
        self, *, only_new: bool = False, **config: Unpack[StreamConfigParams]
    ) -> StreamStored:
        """Create the stream. If it exists with these settings, return it, with `created` False.

        Settings that you leave out are not compared. Raises AlreadyExists, which names the settings that differ; with
        `only_new`, whenever it exists.
        """
        call = replace(put_stream(self.name, if_none_match="*"), json=config)
        return await create(self.transport, call, StreamStored.from_dict, only_new=only_new)

    async def apply(
        self, *, dry_run: bool = False, **config: Unpack[StreamConfigParams]
    ) -> StreamStored:
        """Create the stream, or replace its configuration; `changes` has the fields that differed.

        Settings that you leave out take their defaults. With `dry_run`, nothing is stored.
        """
        call = put_stream(self.name, dry_run=dry_run)
        return await self.transport.call(replace(call, json=config))

    async def config(self) -> StreamOut:
        """Return the configuration."""
        return await self.transport.call(get_stream(self.name))

    async def change(self, **config: Unpack[StreamPatchParams]) -> StreamOut:
        """Change fields of the configuration; None resets a field to its default."""
        call = change_stream(self.name, body=StreamPatch())
        return await self.transport.call(replace(call, json=config))

    async def delete(self) -> None:
        """Delete the stream and its records."""
        await self.transport.call(delete_stream(self.name))

    # ── Putting ──

    async def put(
        self,
        data: Any,
        *,
        key: str = "",
        headers: dict[str, str] | None = None,
        content_type: str = "",
        event_time: datetime | None = None,
        idempotency_key: str | None = None,
    ) -> Appended:
        """Append one record. Raises ItemRefused.

        `data`: bytes, text, or any value with a JSON form.
        """
        record = wire.outgoing(NewRecord(data, key, headers, content_type, event_time))
        return only(await self._append([record], idempotency_key))

    async def put_many(self, records: Iterable[Any], *, key: str = "") -> list[Appended]:
        """Append data or NewRecords; return the shard and offset of each, in order.

        `key` applies to plain data. If the records do not fit into one call, they are sent in several. Raises PartlyRefused if
        some were rejected; calls after the first one with a rejected record are not sent.
        """
        named = (one if isinstance(one, NewRecord) else NewRecord(one, key) for one in records)
        done: list[Appended] = []
        for batch in batches(map(wire.outgoing, named), lambda record: len(record.data)):
            results = await self._append(batch, None)
            if any(isinstance(one, ItemRefused) for one in results):
                raise PartlyRefused([*done, *results])
            done += [one for one in results if isinstance(one, Appended)]
        return done

    async def _append(
        self, batch: list[wire.OutRecord], key: str | None
    ) -> list[Appended | ItemRefused]:
        """Append a batch; retry temporary rejections with the same key, which adds nothing twice."""
        call = wire.append(self.name, batch, key or uuid.uuid4().hex)
        remaining = Remaining(call, self.transport.options.retries)
        while True:
            results = await self.transport.call(call)
            pause = remaining.pause_after(results)
            if pause is None:
                return results
            await self.transport.sleep(pause)

    async def put_to_shard(
        self,
        shard: int,
        records: Iterable[Any],
        *,
        producer: Mapping[str, Any] | None = None,
        expected_offset: int | None = None,
        fence: str | None = None,
    ) -> list[Appended]:
        """Append to one shard, all records or none.

        The call is retried after an unknown outcome only with a `producer` {id, epoch, sequence} or an expected offset.
        """
        conditions = {"producer": producer, "expected_offset": expected_offset, "fence": fence}
        batch = [wire.outgoing(record) for record in records]
        results = await self.transport.call(
            wire.append_to_shard(self.name, shard, batch, conditions)
        )
        return [only([one]) for one in results]

    # ── Reading ──

    async def read_page(
        self,
        *,
        cursor: str = "",
        start: str = "earliest",
        limit: int = 1000,
        bytes_max: int | None = None,
        wait_seconds: float = 0,
    ) -> StreamRead:
        """Read records of all shards by arrival; continue at `next_cursor`."""
        query: dict[str, Any] = {"cursor": cursor, "limit": limit, "bytes_max": bytes_max}
        query |= {"wait_seconds": wait_seconds or None, "from": None if cursor else start}
        return await self.transport.call(wire.read_stream(self.name, query))

    async def read_shard_page(
        self,
        shard: int,
        *,
        offset: int | None = None,
        time: datetime | None = None,
        tail: int | None = None,
        limit: int = 1000,
        bytes_max: int | None = None,
        wait_seconds: float = 0,
        stream_id: str = "",
    ) -> ShardRead:
        """Read one shard from an offset, a time, or its last records; continue at `next_offset`.

        With the `stream_id` of an earlier page, raises Gone if another stream has the name.
        """
        query: dict[str, Any] = {"offset": offset, "time": time, "tail": tail, "limit": limit}
        query |= {"bytes_max": bytes_max, "wait_seconds": wait_seconds or None}
        query |= {"stream_id": stream_id}
        return await self.transport.call(wire.read_shard(self.name, shard, query))

    def subscribe(
        self,
        start: Start = "latest",
        *,
        offsets: Mapping[int, int] | None = None,
        shard: int | None = None,
        filter: Mapping[str, Any] | None = None,
        on_gap: OnGap | None = None,
        messages: int = MESSAGES_DEFAULT,
        bytes: int = BYTES_DEFAULT,
    ) -> AsyncSubscription:
        """Subscribe to the stream's records over a WebSocket, with a prefetch limit.

        Starts at the earliest or latest record, at a time, or at offsets by shard. `filter` has the form of a replay's filter.
        """
        plan = Plan(
            stream=self.name,
            start=start,
            offsets=offsets,
            shard=shard,
            filter=filter,
            messages=messages,
            bytes=bytes,
        )
        return AsyncSubscription(self.transport, plan, on_gap)

    async def latest(self, key: str) -> RecordOut:
        """Return the latest record of a key, if the stream has a `key_index`. Raises NotFound."""
        return await self.transport.call(get_latest_record(self.name, key))

    # ── Shards ──

    async def shards(self) -> list[ShardOut]:
        """List the shards, open and closed, with their extents."""
        return (await self.transport.call(list_shards(self.name))).items

    async def load(self) -> list[ShardLoadOut]:
        """Return the load of each open shard over the last minute, with its hottest keys."""
        return (await self.transport.call(get_stream_load(self.name))).items

    async def reshard(
        self,
        shards: int | None = None,
        *,
        split: int | None = None,
        at_hash_key: int | None = None,
        merge: tuple[int, int] | None = None,
    ) -> list[ShardOut]:
        """Reshard to a number of equal shards, split one shard, or merge two adjacent ones.

        A split is at the middle of the shard, or at a hash key.
        """
        asked: dict[str, Any] = {"shards": shards, "merge": merge}
        if split is not None:
            place = None if at_hash_key is None else str(at_hash_key)
            asked["split"] = {"shard": split, "at_hash_key": place}
        said = {name: value for name, value in asked.items() if value is not None}
        call = replace(reshard_stream(self.name, body=Reshard()), json=said)
        return (await self.transport.call(call)).items

    async def truncate(self, shard: int, before: int) -> int:
        """Permanently delete a shard's records before an offset; return its oldest offset."""
        call = truncate_shard(self.name, shard, body=Truncate(before))
        return (await self.transport.call(call)).start

    async def fence(self, shard: int, token: str, expected: str | None = None) -> bool:
        """Set the fencing token of a shard, which appends must then carry.

        An empty token removes the fence.
        """
        asked = FenceConfig(token, UNSET if expected is None else expected)
        return (await self.transport.call(put_fence(self.name, shard, body=asked))).fenced

    # ── Archive ──

    async def archive(self) -> Any:
        """Return the archive state, by shard."""
        return await self.transport.call(get_archive(self.name))

    async def flush_archive(self) -> str:
        """Archive all records now; return the id of the job."""
        return (await self.transport.call(flush_archive(self.name))).job
