"""Faults put into the product on purpose: each must be found by the simulator.

python -m tests.simulator.run --mutation commits_of_any_generation
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import count
from typing import Any, NamedTuple
from unittest import mock

from sqlalchemy import text

from consumers.routing.batch_sender import BatchSender
from consumers.routing.copies import Copy
from consumers.routing.topic_router import TopicRouter
from storage.domain.filters import match_index
from storage.domain.filters.match_index import MatchIndex
from storage.domain.log import store_epoch as epoch_rules
from storage.domain.log.record_batch import Record
from storage.domain.names import QueueName, StreamName, TopicName
from storage.domain.streams.idempotence import NO_WATERMARK
from storage.domain.topics.read_match import StoredMatch, StoredMessage
from storage.domain.topics.report import MessageRoute, MessageRouteState
from storage.domain.topics.route import ProducerIds, TopicRoute
from storage.domain.topics.routing import TopicPositions
from storage.domain.topics.targets.rendezvous import RendezvousHash
from storage.log import store_epoch
from storage.postgres import queries
from storage.postgres.repositories.group_locks import LockedGroup
from storage.queues.engine import Queues
from storage.sources import transfer as source_transfer
from storage.topics.engine import Topics
from storage.topics.queue_intake import QueueIntake
from storage.topics.reports import TopicReports
from tests.chaos.stage import EVENTS
from tests.simulator.hot_store.scripts import interpreter
from tests.simulator.schedule import (
    LOSSES,
    QUEUE_ROUTES,
    QUEUES,
    REQUESTS,
    SOURCES,
    STREAMS,
    TOPICS,
    Profile,
    fail_one_script,
)
from tests.simulator.topic_clients import DEAD, TWICE_ROUTES


class Mutation(NamedTuple):
    """A fault, the profile that finds it, and the invariant that it violates there."""

    profile: Profile
    """With fewer faults than it has, where all of them find the mutation too seldom."""
    invariant: str
    applied: Callable[[], AbstractContextManager[None]]
    likely_seed: int = 0
    """Seed to try first: one that violated the invariant when it was noted. Any other may, too."""


def _in_lua(before: str, after: str) -> Callable[[], AbstractContextManager[None]]:
    return partial(interpreter().edited, before, after)


@contextmanager
def _in_sql(name: str, before: str, after: str) -> Iterator[None]:
    statement = queries.query(name).text
    assert before in statement
    changed = {name: text(statement.replace(before, after))}
    with mock.patch.dict(queries.statements(), changed):
        yield


@contextmanager
def _without_new_epochs() -> Iterator[None]:
    def is_empty(_: object, facts: epoch_rules.StoreFacts) -> bool:
        return facts.epoch == 0

    with mock.patch.object(store_epoch, "needs_new_epoch", is_empty):
        yield


@contextmanager
def _without_adoption() -> Iterator[None]:
    async def take(_: LockedGroup, __: object) -> None:
        """Leave the rows as they are."""

    with mock.patch.object(LockedGroup, "take", take):
        yield


@contextmanager
def _cleared_before_delivery() -> Iterator[None]:
    deliver = source_transfer._SourceOutbox.deliver

    async def clear_and_deliver(self: Any, target: Any, entries: Any) -> bool:
        await self.clear(target, entries, delivered=True)
        return await deliver(self, target, entries)

    with mock.patch.object(source_transfer._SourceOutbox, "deliver", clear_and_deliver):
        yield


@contextmanager
def _without_confirmed_routes() -> Iterator[None]:
    async def trust(_: TopicRouter) -> None:
        pass

    with mock.patch.object(TopicRouter, "confirm_routes", trust):
        yield


@contextmanager
def _without_waiting_copies() -> Iterator[None]:
    def read(router: TopicRouter) -> TopicPositions:
        assert router._tail is not None
        lags = {key: dict(one.positions) for key, one in router._lagging.items()}
        return TopicPositions(dict(router._tail.positions), lags)

    with mock.patch.object(TopicRouter, "_positions", read):
        yield


@contextmanager
def _with_plain_dead_letters() -> Iterator[None]:
    async def send(queues: Queues, name: QueueName, batch: object, messages: Any) -> None:
        if name.name == DEAD:
            await queues.send(name, messages)
        else:
            await original(queues, name, batch, messages)

    original: Any = Queues.send_idempotent_batch
    with mock.patch.object(Queues, "send_idempotent_batch", send):
        yield


@contextmanager
def _with_a_target_written_first() -> Iterator[None]:
    async def publish(topics: Topics, name: TopicName, messages: Any, **options: Any) -> Any:
        records = [Record(message.body, message.key) for message in messages]
        await topics._streams.append(StreamName(EVENTS, name.namespace), records)
        return await original(topics, name, messages, **options)

    original: Any = Topics.publish
    with mock.patch.object(Topics, "publish", publish):
        yield


@contextmanager
def _with_one_producer_for_two_routes() -> Iterator[None]:
    def producer_ids(route: TopicRoute) -> Mapping[int, str]:
        is_one_of_two = route.name.route in TWICE_ROUTES
        return ProducerIds("", 0) if is_one_of_two else ProducerIds(route.stream_id, route.number)

    with mock.patch.object(TopicRoute, "producer_ids", property(producer_ids)):
        yield


@contextmanager
def _with_one_dead_producer_for_all_members() -> Iterator[None]:
    def dead_producer_id(route: TopicRoute, shard: int, _: int | None = None) -> str:
        return f"{route.producer_ids[shard]}.dead"

    with mock.patch.object(TopicRoute, "dead_producer_id", dead_producer_id):
        yield


@contextmanager
def _with_members_by_turns() -> Iterator[None]:
    turns = count()

    def member(hashed: RendezvousHash, _: bytes) -> int:
        return next(turns) % len(hashed._members)

    with mock.patch.object(RendezvousHash, "member", member):
        yield


@contextmanager
def _with_a_number_for_each_match() -> Iterator[None]:
    def find(index: MatchIndex, document: Any) -> list[int]:
        search = match_index._Search(document)
        numbers = [item.number for item in index._candidates(search) if search.holds(item)]
        return sorted([*index._everything, *numbers])

    with mock.patch.object(MatchIndex, "find", find):
        yield


@contextmanager
def _waiting_for_full_buffers() -> Iterator[None]:
    async def add(router: TopicRouter, copies: Sequence[Copy]) -> None:
        key = copies[0].branch.target_key
        if (buffer := router._buffers.get(key)) is not None and key not in router._lagging:
            await buffer.wait_for_capacity(None)
        await original(router, copies)

    original: Any = TopicRouter._add
    with mock.patch.object(TopicRouter, "_add", add):
        yield


@contextmanager
def _with_reports_of_present_routes() -> Iterator[None]:
    async def routes_of(reports: TopicReports, name: TopicName, message_id: Any) -> Any:
        message = StoredMessage(name, (await reports.message(name, message_id)).record)
        numbers = (await reports._tables.refresh(name, message_id.stream_id)).numbers_for(
            message.document
        )
        return [MessageRoute(number, MessageRouteState.WAITING) for number in numbers]

    with mock.patch.object(TopicReports, "routes_of_message", routes_of):
        yield


@contextmanager
def _routed_by_present_routes() -> Iterator[None]:
    def routes_of(router: TopicRouter, shard: int, entry: Any) -> Any:
        if router._revisions.of_stream is not None:
            return original(router, shard, entry)
        message = StoredMessage(router._stream.name.topic, entry.record)
        current = [one for one in router._revisions.by_number.values() if one.until is None]
        return [one for one in current if StoredMatch(one.spec.match).takes(message)]

    original: Any = TopicRouter.routes_of
    with mock.patch.object(TopicRouter, "routes_of", routes_of):
        yield


@contextmanager
def _returned_without_a_look_at_the_log() -> Iterator[None]:
    """Return refused messages of a queue that the topic has already."""

    async def nothing(*_: object) -> int:
        return NO_WATERMARK

    with mock.patch.object(QueueIntake, "_last", nothing):
        yield


@contextmanager
def _without_waiting_for_targets() -> Iterator[None]:
    async def deliver(sender: BatchSender, copies: Any, error: object) -> Any:
        sender._counts.add_delivered(copies)
        return sender._finish(copies)

    with mock.patch.object(BatchSender, "_without_target", deliver):
        yield


MUTATIONS = {
    "returned_without_a_look_at_the_log": Mutation(
        QUEUE_ROUTES._replace(faults=(fail_one_script,)),
        "T1 an accepted message is in the topic once",
        _returned_without_a_look_at_the_log,
        likely_seed=1,
    ),
    "departures_counted_anew": Mutation(
        QUEUE_ROUTES,
        "T1 an accepted message is in the topic once",
        _in_lua("return base + number", "return base + number % 9"),
    ),
    "any_receipt_handle": Mutation(
        QUEUES,
        "Q2 a stale delivery cannot be acknowledged",
        _in_lua(
            "if not any_delivery and (record[RECEIVES] ~= receives or record[RECEIVED] ~= received) then",
            "if false then",
        ),
    ),
    "leases_end_at_once": Mutation(
        QUEUES,
        "Q8 delays and visibility timeouts are respected",
        _in_lua(
            "leased[out + 1], leased[out + 2] = deadline, offset",
            "leased[out + 1], leased[out + 2] = word(now + 1), offset",
        ),
    ),
    "transfers_arrive_again": Mutation(
        QUEUES,
        "Q9 a dead-letter queue receives each message once",
        _in_lua("if not recall(K.arrived, K.arrived_old, ARGV[index]) then", "if true then"),
        likely_seed=4,
    ),
    "idempotency_keys_forgotten": Mutation(
        STREAMS,
        "S4 a repeated append is idempotent",
        _in_lua("local known = key_verdict(key, fingerprint, count)", "local known = nil"),
        likely_seed=1,
    ),
    "watermarks_not_written": Mutation(
        STREAMS,
        "R1 a replay sends each record once",
        _in_lua("write_watermarks(rising)\n  if", "if"),
    ),
    "commits_of_any_generation": Mutation(
        STREAMS,
        "G2 a stale generation cannot commit",
        _in_lua(
            "return member ~= '' and owner == member and given and given >= lease and given <= generation",
            "return true",
        ),
        likely_seed=2,
    ),
    "offsets_not_adopted": Mutation(
        STREAMS, "G3 committed offsets never move back", _without_adoption
    ),
    "groups_not_locked": Mutation(
        STREAMS,
        "G2 a stale generation cannot commit",
        partial(_in_sql, "hold_group", "for update of g", ""),
        likely_seed=3,
    ),
    "event_ids_forgotten": Mutation(
        SOURCES,
        "E5 an event is in its target once",
        _in_lua("if accepted_ms and now - tonumber(accepted_ms)", "if false and now"),
    ),
    "replies_without_limit": Mutation(
        REQUESTS,
        "T13 a request has its accepted replies",
        _in_lua("if count > most then", "if false then"),
    ),
    "repeated_replies_added": Mutation(
        REQUESTS,
        "T13 a request has its accepted replies",
        _in_lua(
            "if ARGV[5] ~= '' and redis.call('HEXISTS', KEYS[1], identity) == 1 then",
            "if false then",
        ),
    ),
    "replies_after_the_last_reading": Mutation(
        REQUESTS,
        "T13 a request has its accepted replies",
        _in_lua(" or redis.call('HEXISTS', KEYS[1], 'closed') == 1 then", " then"),
        likely_seed=2,
    ),
    "outbox_cleared_first": Mutation(
        SOURCES, "E5 an event is in its target once", _cleared_before_delivery
    ),
    "publishers_not_fenced": Mutation(
        TOPICS,
        "T3 a change of routes cuts exactly",
        _in_lua(
            "if (held[7] or '') ~= fence then\n    return { FENCED, held[7] or '' }\n  end\n  if id",
            "if id",
        ),
    ),
    "dedup_keys_of_parents_unknown": Mutation(
        TOPICS,
        "T8 a deduplication id adds one message",
        _in_lua("return { CLOSED, held[6], signed }", "return { CLOSED, held[6] }"),
    ),
    "dedup_keys_forgotten": Mutation(
        TOPICS,
        "T8 a deduplication id adds one message",
        _in_lua("local known = dedup_keys[key] or recall(dedup, dedup_old, key)", "local known"),
    ),
    "dead_letters_arrive_again": Mutation(
        TOPICS, "T1 a message reaches each of its routes once", _with_plain_dead_letters
    ),
    "waiting_copies_passed": Mutation(
        TOPICS, "T10 the counts of a route add up", _without_waiting_copies
    ),
    "records_matched_with_former_routes": Mutation(
        TOPICS, "T3 records reach the route that takes them", _without_confirmed_routes
    ),
    "copies_added_again": Mutation(
        TOPICS,
        "T1 a message reaches each of its routes once",
        _in_lua("write_watermarks(rising)\n  if", "if"),
    ),
    "target_written_first": Mutation(
        TOPICS,
        "T2 an unacknowledged message is whole",
        _with_a_target_written_first,
        likely_seed=4,
    ),
    "routes_share_producers": Mutation(
        TOPICS, "T5 each route brings one copy", _with_one_producer_for_two_routes
    ),
    "members_share_dead_producers": Mutation(
        TOPICS,
        "T1 a message reaches each of its routes once",
        _with_one_dead_producer_for_all_members,
        likely_seed=1,
    ),
    "members_take_turns": Mutation(
        TOPICS, "T1 a message is in its member of spread", _with_members_by_turns
    ),
    "routes_taken_for_each_match": Mutation(
        TOPICS, "T5 each route brings one copy", _with_a_number_for_each_match
    ),
    "full_buffers_waited_for": Mutation(
        TOPICS,
        "T6 a full target delays no other route",
        _waiting_for_full_buffers,
        likely_seed=2,
    ),
    "reports_match_again": Mutation(
        TOPICS, "T7 what takes a message is final", _with_reports_of_present_routes
    ),
    "routers_match_again": Mutation(
        TOPICS, "T1 a message reaches each of its routes once", _routed_by_present_routes
    ),
    "missing_targets_passed": Mutation(
        TOPICS,
        "T1 a recreated target misses only earlier messages",
        _without_waiting_for_targets,
        likely_seed=3,
    ),
    "epoch_kept_after_loss": Mutation(LOSSES, "S1 an offset has one value", _without_new_epochs),
}
