# Generated from aio/topics.py by `make sdk`; changes are lost.
"""Topics: configuration, publishing, routes, and results of their matches."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from millstream_client import publications as wire
from millstream_client import requests
from millstream_client.batches import batches
from millstream_client.core.api.topics.backtest_match import backtest_match
from millstream_client.core.api.topics.change_route import change_route
from millstream_client.core.api.topics.change_topic import change_topic
from millstream_client.core.api.topics.delete_route import delete_route
from millstream_client.core.api.topics.delete_topic import delete_topic
from millstream_client.core.api.topics.explain_message import explain_message
from millstream_client.core.api.topics.get_message_routes import get_message_routes
from millstream_client.core.api.topics.get_published_message import (
    get_published_message,
)
from millstream_client.core.api.topics.get_route import get_route
from millstream_client.core.api.topics.get_route_stats import get_route_stats
from millstream_client.core.api.topics.get_topic import get_topic
from millstream_client.core.api.topics.get_topic_stats import get_topic_stats
from millstream_client.core.api.topics.list_routes import list_routes
from millstream_client.core.api.topics.pause_route import pause_route
from millstream_client.core.api.topics.put_route import put_route
from millstream_client.core.api.topics.put_topic import put_topic
from millstream_client.core.api.topics.resume_route import resume_route
from millstream_client.core.api.topics.start_backtest_job import start_backtest_job
from millstream_client.core.models.back_test_config import BackTestConfig
from millstream_client.core.models.back_test_job_config import BackTestJobConfig
from millstream_client.core.models.explain_request import ExplainRequest
from millstream_client.core.models.route_config import RouteConfig
from millstream_client.core.models.route_patch import RoutePatch
from millstream_client.core.models.route_stored import RouteStored
from millstream_client.core.models.route_target_config import RouteTargetConfig
from millstream_client.core.models.topic_patch import TopicPatch
from millstream_client.core.models.topic_stored import TopicStored
from millstream_client.core.types import UNSET
from millstream_client.errors import ItemRefused, PartlyRefused
from millstream_client.messages import only
from millstream_client.publications import NewPublication, Published
from millstream_client.repeating import Remaining
from millstream_client.requests import Reply
from millstream_client.sync.backtests import BackTestJob
from millstream_client.sync.definitions import create
from millstream_client.sync.pages import all_pages
from millstream_client.sync.resources import Resource

if TYPE_CHECKING:
    from datetime import datetime

    from millstream_client.calls import Call
    from millstream_client.core.models.back_test_out import BackTestOut
    from millstream_client.core.models.explanation import Explanation
    from millstream_client.core.models.message_routes import MessageRoutes
    from millstream_client.core.models.route_out import RouteOut
    from millstream_client.core.models.route_stats import RouteStats
    from millstream_client.core.models.topic_message_out import TopicMessageOut
    from millstream_client.core.models.topic_out import TopicOut
    from millstream_client.core.models.topic_stats import TopicStats
    from millstream_client.core.params import (
        RouteConfigParams,
        RoutePatchParams,
        SpreadMemberConfigParams,
        TopicConfigParams,
        TopicPatchParams,
    )
    from millstream_client.retries import Retries
    from millstream_client.sync.transport import Transport

PAGE = 1_000

SpreadBy = Literal["key", "subject", "random"]
"""Part of a message that the member of a spread depends on."""


class Topic(Resource):
    """A topic, whether it exists or not. Raises MillstreamError.

    Its messages are read as the stream `topic:<name>`.
    """

    # ── Configuration ──

    def create(self, *, only_new: bool = False, **config: Unpack[TopicConfigParams]) -> TopicStored:
        """Create the topic. If it exists with these settings, return it, with `created` False.

        Settings that you leave out are not compared. Raises AlreadyExists, which names the settings that differ; with
        `only_new`, whenever it exists.
        """
        call = replace(put_topic(self.name, if_none_match="*"), json=config)
        return create(self.transport, call, TopicStored.from_dict, only_new=only_new)

    def apply(self, *, dry_run: bool = False, **config: Unpack[TopicConfigParams]) -> TopicStored:
        """Create the topic, or replace its configuration; `changes` has the fields that differed.

        Settings that you leave out take their defaults. With `dry_run`, nothing is stored.
        """
        call = put_topic(self.name, dry_run=dry_run)
        return self.transport.call(replace(call, json=config))

    def config(self) -> TopicOut:
        """Return the configuration."""
        return self.transport.call(get_topic(self.name))

    def change(self, **config: Unpack[TopicPatchParams]) -> TopicOut:
        """Change fields of the configuration; None resets a field to its default."""
        call = change_topic(self.name, body=TopicPatch())
        return self.transport.call(replace(call, json=config))

    def delete(self) -> None:
        """Delete the topic with its messages and routes."""
        self.transport.call(delete_topic(self.name))

    def stats(self) -> TopicStats:
        """Return the number of messages, and of those that are not yet examined for the routes."""
        return self.transport.call(get_topic_stats(self.name))

    # ── Publishing ──

    def publish(
        self,
        body: Any,
        *,
        subject: str = "",
        key: str = "",
        headers: dict[str, str] | None = None,
        content_type: str = "",
        dedup_id: str = "",
        delay_seconds: float | None = None,
        ttl_seconds: float | None = None,
        priority: int = 0,
        idempotency_key: str | None = None,
    ) -> Published:
        """Publish one message. Raises ItemRefused.

        `body`: bytes, text, or any value with a JSON form. On a FIFO topic a `dedup_id` that was accepted within five minutes
        adds nothing; the result is the first message, with `duplicate`.
        """
        new = NewPublication(
            body,
            subject,
            key,
            headers,
            content_type,
            dedup_id,
            delay_seconds,
            ttl_seconds,
            priority,
        )
        message = wire.outgoing(new)
        return only(self._publish([message], idempotency_key))

    def request(
        self,
        body: Any,
        *,
        replies_max: int = 1,
        timeout_seconds: float = 20.0,
        subject: str = "",
        key: str = "",
        headers: dict[str, str] | None = None,
        content_type: str = "",
        dedup_id: str = "",
        idempotency_key: str | None = None,
    ) -> list[Reply]:
        """Publish a message, and gather the replies of its receivers until the deadline.

        It returns as soon as there are `replies_max` replies. A repeat with the same key publishes nothing, and waits for the same
        replies.
        """
        call = requests.publish_request(
            self.name,
            body,
            timeout_seconds,
            idempotency_key or uuid.uuid4().hex,
            replies_max=replies_max,
            subject=subject,
            key=key,
            headers=headers,
            content_type=content_type,
            dedup_id=dedup_id,
        )
        answer = self.transport.call(call)
        while not answer.complete:
            answer = self.transport.call(requests.get_replies(answer.request))
        return answer.replies

    def publish_many(self, messages: Iterable[Any], *, subject: str = "") -> list[Published]:
        """Publish bodies or NewPublications; return the result of each, in order.

        `subject` applies to plain bodies. If the messages do not fit into one call, they are sent in several. Raises
        PartlyRefused if some were rejected; calls after the first one with a rejected message are not sent.
        """
        named = (
            one if isinstance(one, NewPublication) else NewPublication(one, subject)
            for one in messages
        )
        done: list[Published] = []
        for batch in batches(map(wire.outgoing, named), lambda message: len(message.body)):
            results = self._publish(batch, None)
            if any(isinstance(one, ItemRefused) for one in results):
                raise PartlyRefused([*done, *results])
            done += [one for one in results if isinstance(one, Published)]
        return done

    def _publish(
        self, batch: list[wire.OutPublication], key: str | None
    ) -> list[Published | ItemRefused]:
        """Publish a batch; retry temporary rejections with the same key, which adds nothing twice."""
        call = wire.publish(self.name, batch, key or uuid.uuid4().hex)
        remaining = Remaining(call, self.transport.options.retries)
        while True:
            results = self.transport.call(call)
            pause = remaining.pause_after(results)
            if pause is None:
                return results
            self.transport.sleep(pause)

    # ── Messages ──

    def message(self, message_id: str) -> TopicMessageOut:
        """Return a published message."""
        return self.transport.call(get_published_message(self.name, message_id))

    def message_routes(self, message_id: str) -> MessageRoutes:
        """Return the routes that take a published message, and the state of each."""
        return self.transport.call(get_message_routes(self.name, message_id))

    def explain(
        self,
        body: Any = "",
        *,
        subject: str = "",
        key: str = "",
        headers: dict[str, str] | None = None,
        message_id: str | None = None,
        route: str | None = None,
    ) -> Explanation:
        """Return which routes take a message, and for the others the conditions that fail.

        The message is not published. With `message_id`, it is one that was.
        """
        message = {"body": body, "subject": subject, "key": key, "headers": headers or {}}
        request: dict[str, Any] = {"message": message} if message_id is None else {"id": message_id}
        if route is not None:
            request["route"] = route
        call = explain_message(self.name, body=ExplainRequest())
        return self.transport.call(replace(call, json=request))

    def backtest(
        self,
        match: Any = None,
        *,
        compare_with: str | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        messages_max: int | None = None,
    ) -> BackTestOut:
        """Evaluate a match on the messages that the topic has, beside that of a route.

        Nothing is delivered. If there are more than 200,000 messages, `complete` is false: see `start_backtest`.
        """
        request = _back_test(match, compare_with, start_time, end_time)
        if messages_max is not None:
            request["messages_max"] = messages_max
        call = backtest_match(self.name, body=BackTestConfig())
        return self.transport.call(replace(call, json=request))

    def start_backtest(
        self,
        match: Any = None,
        *,
        compare_with: str | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
    ) -> BackTestJob:
        """Start a job that evaluates a match on all messages of the topic, also archived ones.

        If the same back-test runs already, return that job.
        """
        request = _back_test(match, compare_with, start_time, end_time)
        call = start_backtest_job(self.name, body=BackTestJobConfig())
        started = self.transport.call(replace(call, json=request))
        return self.backtest_job(started.id)

    def backtest_job(self, id: str) -> BackTestJob:
        """Return a back-test that runs as a job, whether it exists or not."""
        return BackTestJob(self.transport, self.name, id)

    # ── Routes ──

    def route(self, name: str) -> Route:
        """Return a route, whether it exists or not."""
        return Route(self.transport, self.name, name)

    def routes(self, prefix: str = "") -> Iterator[RouteOut]:
        """List the routes by name."""

        def ask(cursor: str) -> Any:
            return list_routes(self.name, prefix=prefix, limit=PAGE, cursor=cursor or UNSET)

        for route in all_pages(self.transport, ask):
            yield route


class Route:
    """A route of a topic, whether it exists or not. Raises MillstreamError.

    `match` has the form of the REST API, such as `{"subject": "order.*"}`; the target is a `queue`, a `stream` or another `topic`, or a `spread`
    such as `[{"queue": "worker-1", "weight": 2}, {"queue": "worker-2"}]`, of which each message goes to one member `by` key,
    subject or at random.
    """

    def __init__(self, transport: Transport, topic: str, name: str) -> None:
        self.transport = transport
        self.topic = topic
        self.name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.topic}/{self.name}>"

    def with_options(
        self, *, timeout_seconds: float | None = None, retries: Retries | None = None
    ) -> Self:
        """Return the same route whose calls have another time limit or other retries."""
        options = self.transport.with_options(timeout_seconds, retries, None)
        return type(self)(options, self.topic, self.name)

    def create(
        self,
        match: Any = None,
        *,
        queue: str | None = None,
        stream: str | None = None,
        topic: str | None = None,
        url: str | None = None,
        spread: Sequence[SpreadMemberConfigParams] | None = None,
        by: SpreadBy | None = None,
        only_new: bool = False,
        **config: Unpack[RouteConfigParams],
    ) -> RouteStored:
        """Create the route. If it exists with these settings, return it, with `created` False.

        Settings that you leave out are not compared. A new `url` has a `secret`; for its settings, pass `target` instead. Raises
        AlreadyExists, which names the settings that differ; with `only_new`, whenever it exists.
        """
        call = self._put(
            match,
            _target(queue=queue, stream=stream, topic=topic, url=url, spread=spread, by=by),
            config,
            if_none_match="*",
        )
        return create(self.transport, call, RouteStored.from_dict, only_new=only_new)

    def apply(
        self,
        match: Any = None,
        *,
        queue: str | None = None,
        stream: str | None = None,
        topic: str | None = None,
        url: str | None = None,
        spread: Sequence[SpreadMemberConfigParams] | None = None,
        by: SpreadBy | None = None,
        dry_run: bool = False,
        **config: Unpack[RouteConfigParams],
    ) -> RouteStored:
        """Create the route, or replace its configuration; `changes` has the fields that differed.

        Settings that you leave out take their defaults. With `dry_run`, nothing is stored.
        """
        call = self._put(
            match,
            _target(queue=queue, stream=stream, topic=topic, url=url, spread=spread, by=by),
            config,
            dry_run=dry_run,
        )
        return self.transport.call(call)

    def _put(
        self, match: Any, target: dict[str, Any], config: RouteConfigParams, **conditions: Any
    ) -> Call[RouteStored]:
        body = RouteConfig(RouteTargetConfig())
        call = put_route(self.topic, self.name, body=body, **conditions)
        return replace(call, json={"match": match, "target": target, **config})

    def config(self) -> RouteOut:
        """Return the configuration."""
        return self.transport.call(get_route(self.topic, self.name))

    def change(self, **config: Unpack[RoutePatchParams]) -> RouteOut:
        """Change fields of the configuration; None resets a field to its default."""
        call = change_route(self.topic, self.name, body=RoutePatch())
        return self.transport.call(replace(call, json=config))

    def pause(self) -> RouteOut:
        """Pause the route: messages that it takes wait in the topic's log."""
        return self.transport.call(pause_route(self.topic, self.name))

    def resume(self) -> RouteOut:
        """Resume the route."""
        return self.transport.call(resume_route(self.topic, self.name))

    def delete(self) -> None:
        """Delete the route; messages that it has taken and not delivered are dropped."""
        self.transport.call(delete_route(self.topic, self.name))

    def stats(self) -> RouteStats:
        """Return the numbers of delivered and dropped messages, and how far the route is behind."""
        return self.transport.call(get_route_stats(self.topic, self.name))


def _target(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _back_test(
    match: Any, compare_with: str | None, start_time: datetime | None, end_time: datetime | None
) -> dict[str, Any]:
    return {
        "match": match,
        "compare_with": compare_with,
        "start_time": start_time and start_time.isoformat(),
        "end_time": end_time and end_time.isoformat(),
    }
