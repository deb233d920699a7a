"""Client of a service: create one per service, and get everything else from it.

A module is loaded when it is used: a program that only lists queues loads no subscriptions.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, TypeVar, Unpack
from uuid import uuid4

import httpx

from millstream_client.aio.pages import all_pages
from millstream_client.aio.transport import AsyncTransport
from millstream_client.core.api.archives.list_archived_files import list_archived_files
from millstream_client.core.api.groups.list_consumer_groups import list_consumer_groups
from millstream_client.core.api.health.check_ready import check_ready
from millstream_client.core.api.jobs.list_jobs import list_jobs
from millstream_client.core.api.mirrors.list_mirrors import list_mirrors
from millstream_client.core.api.queues.list_queues import list_queues
from millstream_client.core.api.replays.list_replays import list_replays
from millstream_client.core.api.sources.list_sources import list_sources
from millstream_client.core.api.streams.list_streams import list_streams
from millstream_client.core.api.topics.list_topics import list_topics
from millstream_client.core.api.views.list_views import list_views
from millstream_client.core.models.job_kind import JobKind
from millstream_client.core.models.job_state import JobState
from millstream_client.core.types import UNSET
from millstream_client.hooks import Hooks, OnRequest, OnResponse
from millstream_client.retries import Retries
from millstream_client.settings import DEFAULT, Acknowledge, ApiKey, read_options

if TYPE_CHECKING:
    from millstream_client.aio.groups import AsyncGroup
    from millstream_client.aio.jobs import AsyncJob
    from millstream_client.aio.mirrors import AsyncMirror
    from millstream_client.aio.queries import AsyncQuery
    from millstream_client.aio.queues import AsyncQueue
    from millstream_client.aio.replays import AsyncReplay, AsyncReplays
    from millstream_client.aio.sockets import AsyncSocket
    from millstream_client.aio.sources import AsyncSource
    from millstream_client.aio.streams import AsyncStream
    from millstream_client.aio.subscriptions import AsyncSubscription
    from millstream_client.aio.topics import AsyncTopic
    from millstream_client.aio.views import AsyncView
    from millstream_client.calls import Call
    from millstream_client.core.models.archived_file_out import ArchivedFileOut
    from millstream_client.core.models.job_out import JobOut
    from millstream_client.core.models.listed_group import ListedGroup
    from millstream_client.core.models.listed_queue import ListedQueue
    from millstream_client.core.models.listed_stream import ListedStream
    from millstream_client.core.models.mirror_out import MirrorOut
    from millstream_client.core.models.query_result_out import QueryResultOut
    from millstream_client.core.models.ready_out import ReadyOut
    from millstream_client.core.models.replay_out import ReplayOut
    from millstream_client.core.models.source_out import SourceOut
    from millstream_client.core.models.topic_out import TopicOut
    from millstream_client.core.models.view_out import ViewOut
    from millstream_client.core.params import QueryConfigParams, QueryRelationConfigParams

T = TypeVar("T")

PAGE = 1_000


class AsyncMillstream:
    """Client of one service, safe to share between tasks or threads.

    Close it, or use it `with`. Without arguments it uses the service at `MILLSTREAM_URL` and the key in
    `MILLSTREAM_API_KEY`; the default URL is this machine. `api_key` may be a function, called before each request, that
    returns a token which is renewed elsewhere. `ca_file`: PEM file of the CA that signed the service's certificate;
    default: `MILLSTREAM_CA_FILE`. `http`: an httpx client to use, with certificates or proxies of your own.
    `timeout_seconds` limits each attempt, beyond the wait that a call requests, and `retries` the repeats.
    `on_request` and `on_response` are called for each attempt: see RequestEvent and ResponseEvent.
    `transport`: transport of httpx for calls without a network, as that of `millstream_client.testing`.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: ApiKey | None = None,
        *,
        timeout_seconds: float = 30.0,
        retries: Retries = DEFAULT,
        ca_file: str | None = None,
        http: httpx.AsyncClient | None = None,
        on_request: OnRequest | None = None,
        on_response: OnResponse | None = None,
        transport: Any = None,
    ) -> None:
        hooks = Hooks(on_request, on_response)
        self.options = read_options(
            url, api_key, timeout_seconds, retries, ca_file, hooks=hooks, transport=transport
        )
        self.transport = AsyncTransport(self.options, http)

    async def __aenter__(self) -> AsyncMillstream:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self.transport.aclose()

    def with_options(
        self,
        *,
        timeout_seconds: float | None = None,
        retries: Retries | None = None,
        acknowledge: Acknowledge | None = None,
    ) -> AsyncMillstream:
        """Return a client with another time limit or other retries.

        It shares the connections of this client, which closes them. `acknowledge='primary'`: sends and appends of a replicated
        deployment are acknowledged once its primary has them on disk; they are answered sooner, and a fail-over may lose them.
        """
        other = copy(self)
        other.transport = self.transport.with_options(timeout_seconds, retries, acknowledge)
        other.options = other.transport.options
        return other

    async def call(self, call: Call[T]) -> T:
        """Send a call of the generated core, with retries where they are safe."""
        return await self.transport.call(call)

    async def ready(self) -> ReadyOut:
        """Return whether the service is ready, and the result of each check.

        Raises Unavailable if it is not ready.
        """
        return await self.transport.call(check_ready(), Retries(seconds=0))

    async def reply(
        self,
        reply_to: str,
        body: Any,
        *,
        headers: dict[str, str] | None = None,
        content_type: str = "",
        idempotency_key: str | None = None,
    ) -> None:
        """Reply to a request: the `reply_to` of a received message.

        Acknowledge the message afterwards. Raises Conflict, with the code `reply_taken` or `reply_too_late`, if no reply is accepted any more.
        """
        from millstream_client.requests import send_reply

        key = idempotency_key or uuid4().hex
        await self.transport.call(send_reply(reply_to, body, headers, content_type, key))

    def queue(self, name: str) -> AsyncQueue:
        """Return a queue, whether it exists or not."""
        from millstream_client.aio.queues import AsyncQueue

        return AsyncQueue(self.transport, name)

    def stream(self, name: str) -> AsyncStream:
        """Return a stream, whether it exists or not."""
        from millstream_client.aio.streams import AsyncStream

        return AsyncStream(self.transport, name)

    def topic(self, name: str) -> AsyncTopic:
        """Return a topic, whether it exists or not."""
        from millstream_client.aio.topics import AsyncTopic

        return AsyncTopic(self.transport, name)

    def group(self, name: str) -> AsyncGroup:
        """Return a consumer group, whether it exists or not."""
        from millstream_client.aio.groups import AsyncGroup

        return AsyncGroup(self.transport, name)

    def view(self, name: str) -> AsyncView:
        """Return a view of a stream, whether it exists or not."""
        from millstream_client.aio.views import AsyncView

        return AsyncView(self.transport, name)

    async def run_query(
        self,
        sql: str,
        from_: Mapping[str, QueryRelationConfigParams],
        **config: Unpack[QueryConfigParams],
    ) -> QueryResultOut:
        """Run Spark SQL once, and return the query with its rows, however long it takes.

        `from_` has streams, tables and views under their names in the query, with the fields of the REST API: `{"c": {"stream": "clicks",
        "columns": "page string"}}`. Raises Refused if it is not accepted, fails, or is cancelled.
        """
        from millstream_client.aio.queries import run

        return await run(self.transport, sql, from_, **config)

    def query(self, name: str) -> AsyncQuery:
        """Return a query by its id, whether it exists or not; `run_query` starts one."""
        from millstream_client.aio.queries import AsyncQuery

        return AsyncQuery(self.transport, name)

    def mirror(self, name: str) -> AsyncMirror:
        """Return a mirror of another deployment's streams, whether it exists or not."""
        from millstream_client.aio.mirrors import AsyncMirror

        return AsyncMirror(self.transport, name)

    def source(self, name: str) -> AsyncSource:
        """Return a source of webhooks, whether it exists or not."""
        from millstream_client.aio.sources import AsyncSource

        return AsyncSource(self.transport, name)

    @property
    def replays(self) -> AsyncReplays:
        """The replays of the service; `start` begins one."""
        from millstream_client.aio.replays import AsyncReplays

        return AsyncReplays(self.transport)

    def replay(self, name: str) -> AsyncReplay:
        """Return a replay, whether it exists or not; `replays.start` starts one."""
        from millstream_client.aio.replays import AsyncReplay

        return AsyncReplay(self.transport, name)

    def job(self, name: str) -> AsyncJob:
        """Return a job, whether it exists or not."""
        from millstream_client.aio.jobs import AsyncJob

        return AsyncJob(self.transport, name)

    def subscribe(self, source: str, **options: Any) -> AsyncSubscription:
        """Subscribe to "queue:orders", "stream:clicks" or "group:readers".

        See `subscribe` of each.
        """
        kind, _, name = source.partition(":")
        if kind == "queue":
            return self.queue(name).subscribe(**options)
        if kind == "group":
            return self.group(name).subscribe(**options)
        if kind == "stream":
            return self.stream(name).subscribe(**options)
        raise ValueError(f"{source!r} must start with queue:, stream: or group:")

    def socket(self) -> AsyncSocket:
        """Return a WebSocket for publishing to topics, for requests and for replies.

        Use it `async with`.
        """
        from millstream_client.aio.sockets import AsyncSocket

        return AsyncSocket(self.transport)

    # ── Lists ──

    async def queues(
        self, prefix: str = "", *, measured: bool = False
    ) -> AsyncIterator[ListedQueue]:
        """List queues by name, with the latest measurement of each if requested."""

        def ask(cursor: str) -> Any:
            return list_queues(
                prefix=prefix, limit=PAGE, cursor=cursor or UNSET, measured=measured or UNSET
            )

        async for queue in all_pages(self.transport, ask):
            yield queue

    async def streams(
        self, prefix: str = "", *, measured: bool = False
    ) -> AsyncIterator[ListedStream]:
        """List streams by name, with the latest measurement of each if requested."""

        def ask(cursor: str) -> Any:
            return list_streams(
                prefix=prefix, limit=PAGE, cursor=cursor or UNSET, measured=measured or UNSET
            )

        async for stream in all_pages(self.transport, ask):
            yield stream

    async def groups(
        self, prefix: str = "", *, measured: bool = False
    ) -> AsyncIterator[ListedGroup]:
        """List groups by name, with the latest measurement of each if requested."""

        def ask(cursor: str) -> Any:
            return list_consumer_groups(
                prefix=prefix, limit=PAGE, cursor=cursor or UNSET, measured=measured or UNSET
            )

        async for group in all_pages(self.transport, ask):
            yield group

    async def sources(self, prefix: str = "") -> AsyncIterator[SourceOut]:
        """List sources by name."""

        def ask(cursor: str) -> Any:
            return list_sources(prefix=prefix, limit=PAGE, cursor=cursor or UNSET)

        async for source in all_pages(self.transport, ask):
            yield source

    async def topics(self, prefix: str = "") -> AsyncIterator[TopicOut]:
        """List topics by name."""

        def ask(cursor: str) -> Any:
            return list_topics(prefix=prefix, limit=PAGE, cursor=cursor or UNSET)

        async for topic in all_pages(self.transport, ask):
            yield topic

    async def views(self, prefix: str = "") -> AsyncIterator[ViewOut]:
        """List views by name."""

        def ask(cursor: str) -> Any:
            return list_views(prefix=prefix, limit=PAGE, cursor=cursor or UNSET)

        async for view in all_pages(self.transport, ask):
            yield view

    async def mirrors(self, prefix: str = "") -> AsyncIterator[MirrorOut]:
        """List mirrors by name."""

        def ask(cursor: str) -> Any:
            return list_mirrors(prefix=prefix, limit=PAGE, cursor=cursor or UNSET)

        async for mirror in all_pages(self.transport, ask):
            yield mirror

    async def all_replays(self, state: str | None = None) -> AsyncIterator[ReplayOut]:
        """List replays, newest first."""
        wanted = UNSET if state is None else JobState(state)

        def ask(cursor: str) -> Any:
            return list_replays(state=wanted, cursor=cursor or UNSET)

        async for replay in all_pages(self.transport, ask):
            yield replay

    async def jobs(
        self, kind: str | None = None, state: str | None = None
    ) -> AsyncIterator[JobOut]:
        """List jobs, newest first."""
        of_kind = UNSET if kind is None else JobKind(kind)
        in_state = UNSET if state is None else JobState(state)

        def ask(cursor: str) -> Any:
            return list_jobs(kind=of_kind, state=in_state, cursor=cursor or UNSET)

        async for job in all_pages(self.transport, ask):
            yield job

    async def archived_files(self, stream: str) -> AsyncIterator[ArchivedFileOut]:
        """List the Parquet files of a stream."""

        def ask(cursor: str) -> Any:
            return list_archived_files(stream, limit=PAGE, cursor=cursor or UNSET)

        async for file in all_pages(self.transport, ask):
            yield file
