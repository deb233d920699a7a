"""Options of a message: what topics accept, and what copies get."""

import pytest
from msgspec.structs import replace

from consumers.routing.copies import Copy, copies_of
from storage.domain import limits
from storage.domain.errors import ValidationFailed
from storage.domain.queues.queue import QueueType
from storage.domain.streams.stream import LogRecord, StreamSpec
from storage.domain.streams.topic_spec import TopicDedupScope, TopicSpec, TopicType
from storage.domain.topics.route import TopicRoute
from storage.domain.topics.topic import (
    NO_OPTIONS,
    NewPublication,
    PublicationOptions,
    content_dedup_id,
    options_of,
)
from tests.unit.topics.messages import MESSAGE_ID, ROUTE, spec

STANDARD, FIFO = TopicSpec(), TopicSpec(type=TopicType.FIFO)
BY_CONTENT = replace(FIFO, deduplicate_by_content=True)
NOW_MS = 1_800_000_000_000
PRIORITY_MAX, LONG = limits.PRIORITY_MAX, "d" * (limits.GROUP_CHARACTERS_MAX + 1)


@pytest.mark.parametrize(
    ("topic", "key", "options", "fault"),
    [
        (STANDARD, "", {}, None),
        (STANDARD, "", {"delay_ms": 0, "ttl_ms": 1, "priority": PRIORITY_MAX}, None),
        (STANDARD, "", {"dedup_id": "d"}, ("/dedup_id", "not_supported")),
        (STANDARD, "", {"delay_ms": -1}, ("/delay_seconds", "out_of_range")),
        (STANDARD, "", {"delay_ms": limits.DELAY_MS_MAX + 1}, ("/delay_seconds", "out_of_range")),
        (STANDARD, "", {"ttl_ms": -1}, ("/ttl_seconds", "out_of_range")),
        (STANDARD, "", {"ttl_ms": limits.TTL_MS_MAX + 1}, ("/ttl_seconds", "out_of_range")),
        (STANDARD, "", {"priority": PRIORITY_MAX + 1}, ("/priority", "out_of_range")),
        (STANDARD, "", {"priority": -1}, ("/priority", "out_of_range")),
        (FIFO, "c7", {"dedup_id": "d"}, None),
        (FIFO, "c7", {"dedup_id": "d", "delay_ms": 0, "ttl_ms": 1}, None),
        (FIFO, "", {"dedup_id": "d"}, ("/key", "required")),
        (FIFO, "c7", {}, ("/dedup_id", "required")),
        (FIFO, "c7", {"dedup_id": LONG}, ("/dedup_id", "too_long")),
        (FIFO, "c7", {"dedup_id": "d", "delay_ms": 1}, ("/delay_seconds", "not_supported")),
        (FIFO, "c7", {"dedup_id": "d", "priority": 1}, ("/priority", "not_supported")),
        (BY_CONTENT, "c7", {}, None),
        (BY_CONTENT, "", {}, ("/key", "required")),
    ],
)
def test_topic_accepts_what_its_type_allows(topic, key, options, fault):
    message = NewPublication(b"a", key=key, options=PublicationOptions(**options))

    if fault is None:
        message.check(topic, "")
        return
    with pytest.raises(ValidationFailed) as refusal:
        message.check(topic, "/messages/3")
    assert [(one.pointer, one.code) for one in refusal.value.faults] == [
        (f"/messages/3{fault[0]}", fault[1])
    ]


@pytest.mark.parametrize(
    ("topic", "shards", "fault"),
    [
        (TopicSpec(), 4, None),
        (FIFO, 1, None),
        (FIFO, 2, ("/dedup_scope", "required")),
        (replace(FIFO, dedup_scope=TopicDedupScope.KEY), 2, None),
        (TopicSpec(deduplicate_by_content=True), 1, ("/dedup_scope", "not_supported")),
        (TopicSpec(dedup_scope=TopicDedupScope.KEY), 1, ("/dedup_scope", "not_supported")),
    ],
)
def test_topic_spec_names_its_fault(topic, shards, fault):
    assert [(one.pointer, one.code) for one in topic.faults(shards)] == ([fault] if fault else [])
    if fault:
        with pytest.raises(ValidationFailed):
            StreamSpec(topic=topic, shards=shards).check()


@pytest.mark.parametrize(
    "options",
    [
        NO_OPTIONS,
        PublicationOptions("d", 0, 1, 9),
        PublicationOptions("é", 5),
        PublicationOptions(ttl_ms=7),
    ],
)
def test_record_keeps_options(options):
    record = NewPublication(b"a", "s", "k", options=options).record([1])

    assert options_of(record.headers) == options


def test_content_is_id_of_message_without_one():
    message = NewPublication(b"a", key="k")

    assert message.with_dedup_id().options.dedup_id == content_dedup_id(b"a")
    own = replace(message, options=PublicationOptions("own"))
    assert own.with_dedup_id() is own


def copy_of(options: PublicationOptions, *, number: int = 1, offset: int = 7, **route) -> Copy:
    topic_route = TopicRoute(
        name=ROUTE,
        stream_id=MESSAGE_ID.stream_id,
        number=number,
        spec=spec(**route),
        version=1,
        created_at_ms=0,
        changed_at_ms=0,
    )
    record = NewPublication(b"a", "s", "k", options=options).record([number])
    [copy] = copies_of(0, LogRecord(offset, NOW_MS, record), [topic_route])
    return copy


@pytest.mark.parametrize(
    ("options", "route", "expected"),
    [
        ({}, {}, (None, 0, 0)),
        ({}, {"delay_ms": 5_000, "ttl_ms": 60_000}, (5_000, 60_000, 0)),
        ({"delay_ms": 1_000, "ttl_ms": 10_000}, {}, (1_000, 7_000, 0)),
        (
            {"delay_ms": 0, "ttl_ms": 10_000},
            {"delay_ms": 5_000, "ttl_ms": 60_000},
            (0, 7_000, 0),
        ),
        ({"ttl_ms": 3_000}, {}, (None, 1, 0)),
        ({"ttl_ms": 1}, {}, (None, 1, 0)),
        ({"priority": 9}, {}, (None, 0, 9)),
    ],
)
def test_own_options_win_over_those_of_route(options, route, expected):
    """A copy that is routed three seconds late has the rest of the time to live."""
    copy = copy_of(PublicationOptions(**options), **route)

    message = copy.as_message(QueueType.STANDARD, NOW_MS + 3_000)

    assert (message.delay_ms, message.ttl_ms, message.priority) == expected


def test_copy_in_fifo_queue_has_no_priority():
    assert copy_of(PublicationOptions(priority=9)).as_message(QueueType.FIFO, NOW_MS).priority == 0


@pytest.mark.parametrize(
    ("ttl_ms", "later_ms", "expired"),
    [(0, 10**9, False), (1_000, 999, False), (1_000, 1_000, True)],
)
def test_copy_expires_with_own_time_to_live(ttl_ms, later_ms, expired):
    copy = copy_of(PublicationOptions(ttl_ms=ttl_ms))

    assert copy.source.has_expired(NOW_MS + later_ms) is expired


@pytest.mark.parametrize("dedup_id", ["", "d", "d" * limits.GROUP_CHARACTERS_MAX])
def test_copies_of_messages_and_routes_have_own_ids(dedup_id):
    options = PublicationOptions(dedup_id)
    copies = [
        copy_of(options, number=number, offset=offset) for number in (1, 2) for offset in (7, 8)
    ]

    ids = [copy.as_message(QueueType.FIFO, NOW_MS).dedup_id for copy in copies]

    assert len({*ids}) == len(copies)
    assert max(map(len, ids)) <= limits.GROUP_CHARACTERS_MAX
    assert all(f".{dedup_id[:20]}" in one for one in ids)


def test_topic_target_gets_options_that_it_accepts():
    copy = copy_of(PublicationOptions("d", 1_000, 5_000, 3))

    standard = copy.as_publication(STANDARD, NOW_MS + 1_000)
    fifo = copy.as_publication(FIFO, NOW_MS + 1_000)

    assert standard.options == PublicationOptions("", 1_000, 4_000, 3)
    assert fifo.options == PublicationOptions(fifo.options.dedup_id, 1_000, 4_000, 0)
    assert fifo.options.dedup_id.endswith(".d")
