# Generated from aio/client.py by `make sdk`; changes are lost.
"""Client of a service: create one per service, and get everything else from it.

A module is loaded when it is used: a program that only lists queues loads no subscriptions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, TypeVar, Unpack
from uuid import uuid4

import httpx

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
from millstream_client.sync.pages import all_pages
from millstream_client.sync.transport import Transport

if TYPE_CHECKING:
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
    from millstream_client.core.params import (
        QueryConfigParams,
        QueryRelationConfigParams,
    )
    from millstream_client.sync.groups import Group
    from millstream_client.sync.jobs import Job
    from millstream_client.sync.mirrors import Mirror
    from millstream_client.sync.queries import Query
    from millstream_client.sync.queues import Queue
    from millstream_client.sync.replays import Replay, Replays
    from millstream_client.sync.sockets import Socket
    from millstream_client.sync.sources import Source
    from millstream_client.sync.streams import Stream
    from millstream_client.sync.subscriptions import Subscription
    from millstream_client.sync.topics import Topic
    from millstream_client.sync.views import View

T = TypeVar("T")

PAGE = 1_000


class Millstream:
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
        http: httpx.Client | None = None,
        on_request: OnRequest | None = None,
        on_response: OnResponse | None = None,
        transport: Any = None,
    ) -> None:
        hooks = Hooks(on_request, on_response)
        self.options = read_options(
            url, api_key, timeout_seconds, retries, ca_file, hooks=hooks, transport=transport
        )
        self.transport = Transport(self.options, http)

    def __enter__(self) -> Millstream:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self.transport.close()

    def with_options(
        self,
        *,
        timeout_seconds: float | None = None,
        retries: Retries | None = None,
        acknowledge: Acknowledge | None = None,
    ) -> Millstream:
        """Return a client with another time limit or other retries.

        It shares the connections of this client, which closes them. `acknowledge='primary'`: sends and appends of a replicated
        deployment are acknowledged once its primary has them on disk; they are answered sooner, and a fail-over may lose them.
        """
        other = copy(self)
        other.transport = self.transport.with_options(timeout_seconds, retries, acknowledge)
        other.options = other.transport.options
        return other

    def call(self, call: Call[T]) -> T:
        """Send a call of the generated core, with retries where they are safe."""
        return self.transport.call(call)

    def ready(self) -> ReadyOut:
        """Return whether the service is ready, and the result of each check.

        Raises Unavailable if it is not ready.
        """
        return self.transport.call(check_ready(), Retries(seconds=0))

    def reply(
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
        self.transport.call(send_reply(reply_to, body, headers, content_type, key))

    def queue(self, name: str) -> Queue:
        """Return a queue, whether it exists or not."""
        from millstream_client.sync.queues import Queue

        return Queue(self.transport, name)

    def stream(self, name: str) -> Stream:
        """Return a stream, whether it exists or not."""
        from millstream_client.sync.streams import Stream

        return Stream(self.transport, name)

    def topic(self, name: str) -> Topic:
        """Return a topic, whether it exists or not."""
        from millstream_client.sync.topics import Topic

        return Topic(self.transport, name)

    def group(self, name: str) -> Group:
        """Return a consumer group, whether it exists or not."""
        from millstream_client.sync.groups import Group

        return Group(self.transport, name)

    def view(self, name: str) -> View:
        """Return a view of a stream, whether it exists or not."""
        from millstream_client.sync.views import View

        return View(self.transport, name)

    def run_query(
        self,
        sql: str,
        from_: Mapping[str, QueryRelationConfigParams],
        **config: Unpack[QueryConfigParams],
    ) -> QueryResultOut:
        """Run Spark SQL once, and return the query with its rows, however long it takes.

        `from_` has streams, tables and views under their names in the query, with the fields of the REST API: `{"c": {"stream": "clicks",
        "columns": "page string"}}`. Raises Refused if it is not accepted, fails, or is cancelled.
        """
        from millstream_client.sync.queries import run

        return run(self.transport, sql, from_, **config)

    def query(self, name: str) -> Query:
        """Return a query by its id, whether it exists or not; `run_query` starts one."""
        from millstream_client.sync.queries import Query

        return Query(self.transport, name)

    def mirror(self, name: str) -> Mirror:
        """Return a mirror of another deployment's streams, whether it exists or not."""
        from millstream_client.sync.mirrors import Mirror

        return Mirror(self.transport, name)

    def source(self, name: str) -> Source:
        """Return a source of webhooks, whether it exists or not."""
        from millstream_client.sync.sources import Source

        return Source(self.transport, name)

    @property
    def replays(self) -> Replays:
        """The replays of the service; `start` begins one."""
        from millstream_client.sync.replays import Replays

        return Replays(self.transport)

    def replay(self, name: str) -> Replay:
        """Return a replay, whether it exists or not; `replays.start` starts one."""
        from millstream_client.sync.replays import Replay

        return Replay(self.transport, name)

    def job(self, name: str) -> Job:
        """Return a job, whether it exists or not."""
        from millstream_client.sync.jobs import Job

        return Job(self.transport, name)

    def subscribe(self, source: str, **options: Any) -> Subscription:
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

    def socket(self) -> Socket:
        """Return a WebSocket for publishing to topics, for requests and for replies.

        Use it `async with`.
        """
        from millstream_client.sync.sockets import Socket

        return Socket(self.transport)

    # ── Lists ──

    def queues(self, prefix: str = "", *, measured: bool = False) -> Iterator[ListedQueue]:
        """List queues by name, with the latest measurement of each if requested."""

        def ask(cursor: str) -> Any:
            return list_queues(
                prefix=prefix, limit=PAGE, cursor=cursor or UNSET, measured=measured or UNSET
            )

        for queue in all_pages(self.transport, ask):
            yield queue

    def streams(self, prefix: str = "", *, measured: bool = False) -> Iterator[ListedStream]:
        """List streams by name, with the latest measurement of each if requested."""

        def ask(cursor: str) -> Any:
            return list_streams(
                prefix=prefix, limit=PAGE, cursor=cursor or UNSET, measured=measured or UNSET
            )

        for stream in all_pages(self.transport, ask):
            yield stream

    def groups(self, prefix: str = "", *, measured: bool = False) -> Iterator[ListedGroup]:
        """List groups by name, with the latest measurement of each if requested."""

        def ask(cursor: str) -> Any:
            return list_consumer_groups(
                prefix=prefix, limit=PAGE, cursor=cursor or UNSET, measured=measured or UNSET
            )

        for group in all_pages(self.transport, ask):
            yield group

    def sources(self, prefix: str = "") -> Iterator[SourceOut]:
        """List sources by name."""

        def ask(cursor: str) -> Any:
            return list_sources(prefix=prefix, limit=PAGE, cursor=cursor or UNSET)

        for source in all_pages(self.transport, ask):
            yield source

    def topics(self, prefix: str = "") -> Iterator[TopicOut]:
        """List topics by name."""

        def ask(cursor: str) -> Any:
            return list_topics(prefix=prefix, limit=PAGE, cursor=cursor or UNSET)

        for topic in all_pages(self.transport, ask):
            yield topic

    def views(self, prefix: str = "") -> Iterator[ViewOut]:
        """List views by name."""

        def ask(cursor: str) -> Any:
            return list_views(prefix=prefix, limit=PAGE, cursor=cursor or UNSET)

        for view in all_pages(self.transport, ask):
            yield view

    def mirrors(self, prefix: str = "") -> Iterator[MirrorOut]:
        """List mirrors by name."""

        def ask(cursor: str) -> Any:
            return list_mirrors(prefix=prefix, limit=PAGE, cursor=cursor or UNSET)

        for mirror in all_pages(self.transport, ask):
            yield mirror

    def all_replays(self, state: str | None = None) -> Iterator[ReplayOut]:
        """List replays, newest first."""
        wanted = UNSET if state is None else JobState(state)

        def ask(cursor: str) -> Any:
            return list_replays(state=wanted, cursor=cursor or UNSET)

        for replay in all_pages(self.transport, ask):
            yield replay

    def jobs(self, kind: str | None = None, state: str | None = None) -> Iterator[JobOut]:
        """List jobs, newest first."""
        of_kind = UNSET if kind is None else JobKind(kind)
        in_state = UNSET if state is None else JobState(state)

        def ask(cursor: str) -> Any:
            return list_jobs(kind=of_kind, state=in_state, cursor=cursor or UNSET)

        for job in all_pages(self.transport, ask):
            yield job

    def archived_files(self, stream: str) -> Iterator[ArchivedFileOut]:
        """List the Parquet files of a stream."""

        def ask(cursor: str) -> Any:
            return list_archived_files(stream, limit=PAGE, cursor=cursor or UNSET)

        for file in all_pages(self.transport, ask):
            yield file
