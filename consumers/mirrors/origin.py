"""HTTP client of the deployment that a mirror copies from."""

import asyncio
import base64
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import httpcore
import httpx
import msgspec

from consumers.webhooks.ssrf_guard import AddressRefused, Connections, Resolve, resolve
from storage.domain import limits
from storage.domain.access.egress import Egress
from storage.domain.errors import MillstreamError
from storage.domain.groups.group import GroupSpec
from storage.domain.log.record_batch import CONTENT_TYPE, Header, Record
from storage.domain.mirrors.mirror import MirrorSpec
from storage.domain.queues.backoff import Backoff
from storage.domain.queues.copies import QueueChanges, QueueContentsPage
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import StreamSpec

T = TypeVar("T")

_MSGPACK = b"application/msgpack"
_JSON = b"application/json"
_FAILURES = (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, OSError)
_MS = limits.SECOND_MS


class OriginFailed(Exception):
    """Failure of a request to the origin; the text says why.

    `status`: that of its answer, if there was one.
    """

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


def failure_text(error: OriginFailed | MillstreamError) -> str:
    """Return the text of a failure as it is stored and shown."""
    text = error.detail if isinstance(error, MillstreamError) else str(error)
    return text[: limits.MIRROR_FAILURE_CHARACTERS_MAX].replace("\0", "\ufffd")


class OriginShard(msgspec.Struct, frozen=True):
    """A shard of a stream of the origin."""

    index: int
    parents: tuple[int, ...]
    first_hash_key: str
    last_hash_key: str
    open: bool = True
    next: int = 0

    def hash_key_for(self, key_hash: int | None) -> int:
        """Return the hash key by which a record of the shard is routed.

        A record without a key, or one that was routed by another hash key than that of its key, has the first one of the
        shard, so that it stays in order with the others of those.
        """
        first, last = int(self.first_hash_key), int(self.last_hash_key)
        return key_hash if key_hash is not None and first <= key_hash <= last else first


class _Page(msgspec.Struct, frozen=True):
    items: list[dict[str, Any]]
    next_cursor: str | None = None


class _Shards(msgspec.Struct, frozen=True):
    stream_id: str
    items: tuple[OriginShard, ...]


class OriginRecord(msgspec.Struct, frozen=True):
    """A record of the origin as the wire has it."""

    offset: int
    data: bytes
    content_type: str = ""
    key: str = ""
    headers: dict[str, str] = {}
    headers_base64: dict[str, str] = {}
    event_time: str | None = None

    def to_record(self, hash_key: int, *added: Header) -> Record:
        """Return the record, with headers added to its own."""
        content_type = (
            ((CONTENT_TYPE, "", self.content_type.encode()),) if self.content_type else ()
        )
        texts = ((name, "", value.encode()) for name, value in self.headers.items())
        others = (
            (name, "", base64.b64decode(value)) for name, value in self.headers_base64.items()
        )
        return Record(
            data=self.data,
            key=self.key,
            headers=(*content_type, *texts, *others, *added),
            event_time_ms=_ms_of(self.event_time) if self.event_time else None,
            hash_key=hash_key,
        )


class OriginRead(msgspec.Struct, frozen=True):
    """Records of one shard, as `GET /v1/streams/{stream}/shards/{shard}/records` returns them."""

    records: tuple[OriginRecord, ...]
    next_offset: int
    tip: int
    behind_seconds: float = 0.0
    ended: bool = False


class GroupPosition(msgspec.Struct, frozen=True):
    """The next offset that a group of the origin reads of a shard.

    `committed` is None before its first commit.
    """

    shard: int
    position: int
    committed: int | None = None


class _Positions(msgspec.Struct, frozen=True):
    shards: tuple[GroupPosition, ...]


class _Fenced(msgspec.Struct, frozen=True):
    fenced: bool


class _Problem(msgspec.Struct, frozen=True):
    detail: str = ""


def _ms_of(time: str) -> int:
    moment = datetime.fromisoformat(time)
    return round(moment.timestamp() * _MS)


def group_spec_of(fields: dict[str, Any]) -> GroupSpec:
    """Return the specification of a group of the origin, for its copy. Raises OriginFailed."""
    values = _common_values(GroupSpec, fields)
    start_time = fields.get("start_time")
    try:
        values["start_time_ms"] = None if start_time is None else _ms_of(start_time)
        return msgspec.convert(values | {"paused": False}, GroupSpec)
    except (TypeError, ValueError) as error:
        raise OriginFailed(
            f"A group of the origin has settings of no known form: {error}"
        ) from None


def spec_of(fields: dict[str, Any]) -> StreamSpec:
    """Return the specification of a stream of the origin, for its copy.

    The copy accepts event times however old they are, since records come late. Fields of a later version are ignored.
    Raises OriginFailed.
    """
    try:
        return msgspec.convert(_values_of(fields), StreamSpec)
    except (TypeError, msgspec.ValidationError) as error:
        raise OriginFailed(
            f"A stream of the origin has settings of no known form: {error}"
        ) from None


def queue_spec_of(fields: dict[str, Any]) -> QueueSpec:
    """Return the specification of a queue of the origin, for its copy, which is paused.

    Fields of a later version are ignored. Raises OriginFailed.
    """
    values = _common_values(QueueSpec, fields)
    values["ttl_ms"] = values.get("ttl_ms") or 0
    if (backoff := fields.get("backoff")) is not None:
        values["backoff"] = _common_values(Backoff, backoff)
        delays = backoff.get("delays_seconds") or ()
        values["backoff"]["delays_ms"] = [round(seconds * _MS) for seconds in delays]
    try:
        return msgspec.convert(values | {"paused": True}, QueueSpec)
    except (TypeError, msgspec.ValidationError) as error:
        raise OriginFailed(
            f"A queue of the origin has settings of no known form: {error}"
        ) from None


def _common_values(spec: type[msgspec.Struct], fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that a specification has as well, with durations in milliseconds."""
    values: dict[str, Any] = {}
    for name in spec.__struct_fields__:
        wire_name = name.replace("_ms", "_seconds")
        if wire_name in fields:
            value = fields[wire_name]
            is_time = wire_name != name and isinstance(value, int | float)
            values[name] = round(value * _MS) if is_time else value
    return values


def _values_of(fields: dict[str, Any]) -> dict[str, Any]:
    values = _common_values(StreamSpec, fields)
    values["shards"] = fields.get("open_shards", values.get("shards", 1))
    values["event_time_skew_ms_max"] = None
    return values


def _of_partition(partition: int) -> dict[str, int]:
    """Return the query of a partition, which earlier versions do not know."""
    return {"partition": partition} if partition else {}


class OriginClient:
    """Client of one origin, with its own connections. Every method raises OriginFailed."""

    def __init__(self, spec: MirrorSpec, egress: Egress, resolver: Resolve = resolve) -> None:
        url = httpx.URL(spec.url)
        self._url = url
        self._path = url.raw_path.rstrip(b"/")
        self._connections = Connections(url, egress, resolver)
        self._headers = [
            (b"host", url.netloc),
            (b"user-agent", b"Millstream-Mirror/1"),
            (b"accept-encoding", b"identity"),
        ]
        if spec.key:
            self._headers.append((b"authorization", b"Bearer " + spec.key.encode()))

    async def close(self) -> None:
        """Close the idle connections."""
        await self._connections.close()

    def streams(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the streams that the key may list, as the REST API shows them."""
        return self._listed("/v1/streams")

    def queues(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the queues that the key may list, as the REST API shows them."""
        return self._listed("/v1/queues")

    async def changes(
        self, queue: str, position: str, *, partition: int, next_offset: int, wait_ms: int
    ) -> QueueChanges:
        """Return what has changed in a queue's partition since a position, or wait for it."""
        query = {"position": position, "next_offset": next_offset, "wait_seconds": wait_ms / _MS}
        query |= _of_partition(partition)
        path = f"/v1/queues/{quote(queue, '')}/changes"
        return await self._get(path, query, QueueChanges, accept=_MSGPACK)

    async def contents(
        self, queue: str, *, partition: int, after: int, dead: bool
    ) -> QueueContentsPage:
        """Return messages of a queue's partition, or its dead letters, behind an offset."""
        query = {"after": after, "dead_letters": str(dead).lower(), **_of_partition(partition)}
        path = f"/v1/queues/{quote(queue, '')}/contents"
        return await self._get(path, query, QueueContentsPage, accept=_MSGPACK)

    async def fence_queue(self, queue: str, token: str) -> None:
        """Make a queue read-only for all but mirrors: it takes no messages, and delivers none."""
        path = f"/v1/queues/{quote(queue, '')}/fence"
        body = msgspec.json.encode({"token": token})
        await self._answer(self._request("PUT", path, {}, body=body), _Fenced)

    def groups(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the consumer groups that the key may list, as the REST API shows them."""
        return self._listed("/v1/groups")

    async def _listed(self, path: str) -> AsyncIterator[dict[str, Any]]:
        query: dict[str, Any] = {}
        while True:
            page = await self._get(path, query, _Page)
            for item in page.items:
                yield item
            if not page.next_cursor:
                return
            query = {"cursor": page.next_cursor}

    async def positions(self, group: str) -> tuple[GroupPosition, ...]:
        """Return a group's position in each shard of its stream."""
        return (await self._get(f"/v1/groups/{quote(group, '')}/lag", {}, _Positions)).shards

    async def shards(self, stream: str) -> tuple[str, tuple[OriginShard, ...]]:
        """Return the id of a stream, and its shards, parents before their children."""
        shards = await self._get(f"/v1/streams/{quote(stream, '')}/shards", {}, _Shards)
        return shards.stream_id, shards.items

    async def read(
        self, stream: str, stream_id: str, shard: int, offset: int, *, wait_ms: int
    ) -> OriginRead:
        """Return the next records of a shard, once there is one or the wait is over."""
        query = {
            "offset": offset,
            "limit": limits.BATCH_RECORDS_MAX,
            "bytes_max": limits.MIRROR_READ_BYTES,
            "wait_seconds": wait_ms / _MS,
            "stream_id": stream_id,
        }
        path = f"/v1/streams/{quote(stream, '')}/shards/{shard}/records"
        return await self._get(path, query, OriginRead, accept=_MSGPACK)

    async def fence(self, stream: str, shard: int, token: str) -> None:
        """Set the fencing token of a shard, so that only appends with it are accepted."""
        path = f"/v1/streams/{quote(stream, '')}/shards/{shard}/fence"
        body = msgspec.json.encode({"token": token})
        await self._answer(self._request("PUT", path, {}, body=body), _Fenced)

    async def _get(
        self, path: str, query: dict[str, Any], kind: type[T], accept: bytes = _JSON
    ) -> T:
        return await self._answer(self._request("GET", path, query, accept), kind, accept)

    async def _answer(self, request: httpcore.Request, kind: type[T], accept: bytes = _JSON) -> T:
        status, body = await self._exchange(request)
        try:
            if status == 200:
                decode = msgspec.msgpack.decode if accept is _MSGPACK else msgspec.json.decode
                return decode(body, type=kind)
            detail = msgspec.json.decode(body, type=_Problem).detail
        except msgspec.MsgspecError:
            detail = "" if status != 200 else "not an answer of Millstream"
        raise OriginFailed(f"The origin answered {status}: {detail or 'no reason given'}", status)

    async def _exchange(self, request: httpcore.Request) -> tuple[int, bytes]:
        try:
            async with asyncio.timeout(limits.MIRROR_REQUEST_MS_MAX / _MS):
                return await self._send(request)
        except TimeoutError:
            raise OriginFailed("The origin did not answer in time") from None
        except AddressRefused as refused:
            raise OriginFailed(str(refused)) from None
        except _FAILURES as failed:
            reason = str(failed) or type(failed).__name__
            raise OriginFailed(f"The origin cannot be reached: {reason}") from None

    async def _send(self, request: httpcore.Request) -> tuple[int, bytes]:
        body = bytearray()
        async with self._connections.one() as connection:
            response = await connection.handle_async_request(request)
            try:
                async for piece in response.aiter_stream():
                    body += piece
                    if len(body) > limits.MIRROR_RESPONSE_BYTES_MAX:
                        raise OriginFailed("The origin's answer is too large")
            finally:
                await response.aclose()
        return response.status, bytes(body)

    def _request(
        self,
        method: str,
        path: str,
        query: dict[str, Any],
        accept: bytes = _JSON,
        body: bytes = b"",
    ) -> httpcore.Request:
        text = f"{path}?{urlencode(query)}" if query else path
        target = httpcore.URL(
            scheme=self._url.raw_scheme,
            host=self._url.raw_host,
            port=self._url.port,
            target=self._path + text.encode(),
        )
        headers = [*self._headers, (b"accept", accept)]
        if body:
            length = str(len(body)).encode()
            headers += [(b"content-type", _JSON), (b"content-length", length)]
        return httpcore.Request(method, target, headers=headers, content=body)
