"""Delivery of messages, on the service and on the in-memory one: time, attempts, order, repeats."""

import pytest

from millstream_client import BadRequest, ItemRefused, NewMessage, NotFound, Queue
from millstream_client import messages as wire
from tests.contract.sdk.conftest import BOTH

pytestmark = BOTH

SHORT_S = 0.3
PAST_S = 0.5
"""Longer than the short timeouts, and than a sweep of the service."""


def texts(queue: Queue, messages_max: int = 10) -> list[str]:
    return [message.text for message in queue.receive(messages_max, wait_seconds=1)]


def counts(queue: Queue) -> dict[str, int]:
    stats = queue.stats()
    names = ("ready", "delayed", "in_flight", "dead_lettered", "acknowledged", "deduplicated")
    return {name: getattr(stats, name) for name in names if getattr(stats, name)}


@pytest.fixture
def fifo(millstream, name) -> Queue:
    queue: Queue = millstream.queue(name)
    queue.create(type="fifo")
    return queue


def test_message_is_redelivered_when_visibility_timeout_expires(backend, orders):
    orders.send("hello")
    [first] = orders.receive(visibility_timeout_seconds=SHORT_S)
    assert orders.receive() == []

    backend.advance(PAST_S)
    [second] = orders.receive(wait_seconds=1)

    assert (second.id, second.receive_count, second.failures) == (first.id, 2, 0)
    assert second.delivery.crash_count == 1
    assert second.receipt_handle != first.receipt_handle
    with pytest.raises(ItemRefused) as refused:
        first.ack()
    assert refused.value.code == "receipt_handle_expired"


def test_extended_message_stays_hidden(backend, orders):
    orders.send("hello")
    [message] = orders.receive(visibility_timeout_seconds=SHORT_S)

    message.extend(60)
    backend.advance(PAST_S)

    assert counts(orders) == {"in_flight": 1}
    message.ack()
    assert counts(orders) == {"acknowledged": 1}


def test_delayed_message_is_received_later(backend, orders):
    orders.send("hello", delay_seconds=SHORT_S)
    assert counts(orders) == {"delayed": 1}
    assert orders.receive() == []

    backend.advance(PAST_S)

    assert texts(orders) == ["hello"]


def test_message_expires_after_its_time_to_live(backend, orders):
    orders.send("hello", ttl_seconds=SHORT_S)

    backend.advance(PAST_S)

    assert orders.receive() == []


def test_nacked_message_waits_for_backoff(backend, orders):
    orders.change(backoff={"kind": "fixed", "initial_seconds": SHORT_S, "jitter": "none"})
    orders.send("hello")
    orders.receive()[0].nack()

    waiting = counts(orders)
    backend.advance(PAST_S)

    assert waiting == {"delayed": 1}
    assert texts(orders) == ["hello"]


def test_message_dies_after_its_last_attempt(backend, orders):
    orders.change(attempts_max=2)
    orders.send_many(["failed", "crashed"])

    for _ in range(2):
        for message in orders.receive(2, wait_seconds=1, visibility_timeout_seconds=SHORT_S):
            if message.text == "failed":
                message.nack(delay_seconds=0, reason="no such customer", details="a trace")
        backend.advance(PAST_S)
    assert orders.receive(2) == []

    letters = {letter.body: letter for letter in orders.dead_letters()}
    assert letters["failed"].reason == "no such customer"
    assert letters["failed"].details == "a trace"
    assert (letters["failed"].failures, letters["failed"].crash_count) == (2, 0)
    assert letters["crashed"].reason == "visibility timeout passed 2 times"
    assert counts(orders) == {"dead_lettered": 2}
    assert {reason.reason: reason.count for reason in orders.death_reasons()} == {
        "no such customer": 1,
        "visibility timeout passed 2 times": 1,
    }
    assert orders.redrive(reason="no such customer").redriven == 1
    [message] = orders.receive(2)
    assert (message.text, message.receive_count, message.failures) == ("failed", 1, 0)


def test_rejected_message_dies_at_once(orders):
    orders.send("hello")
    orders.receive()[0].reject("a negative total")

    [letter] = orders.dead_letters()
    assert (letter.body, letter.reason, letter.failures) == ("hello", "a negative total", 1)
    assert orders.message(letter.id).reason == "a negative total"
    assert orders.purge() == 0
    orders.delete_message(letter.id)
    assert list(orders.dead_letters()) == []


def test_priority_precedes_age(orders):
    orders.send_many([NewMessage("low"), NewMessage("high", priority=5), NewMessage("last")])

    assert texts(orders) == ["high", "low", "last"]


def test_group_of_fifo_queue_is_delivered_in_order(fifo):
    fifo.send_many(
        [
            NewMessage("a1", group="a", dedup_id="1"),
            NewMessage("a2", group="a", dedup_id="2"),
            NewMessage("b1", group="b", dedup_id="3"),
        ]
    )
    first, other = fifo.receive(messages_max=1) + fifo.receive(messages_max=1)
    assert fifo.receive(messages_max=1) == []

    first.nack(delay_seconds=60)
    other.ack()

    assert [first.text, other.text] == ["a1", "b1"]
    assert fifo.receive(messages_max=2) == []  # a1 is delayed, and a2 is behind it
    assert counts(fifo) == {"delayed": 1, "ready": 1, "acknowledged": 1}


def test_duplicate_has_id_and_offset_of_the_first(millstream, name):
    fifo = millstream.queue(name)
    fifo.create(type="fifo")
    fifo.send("before", group="a", dedup_id="1")

    first, again = (fifo.send("hello", group="a", dedup_id="2") for _ in range(2))

    assert (again.id, again.offset, again.duplicate) == (first.id, first.offset, True)


def test_receive_of_fifo_queue_returns_messages_of_a_group_in_order(fifo):
    fifo.send_many([NewMessage(str(n), group="a", dedup_id=str(n)) for n in range(3)])

    assert texts(fifo, 3) == ["0", "1", "2"]
    assert fifo.receive() == []


def test_repeated_receive_of_fifo_queue_returns_the_same(millstream, fifo):
    fifo.send_many([NewMessage(str(n), group="a", dedup_id=str(n)) for n in range(3)])
    call = wire.receive(fifo.name, 2, 0, None, "attempt-1")

    first, again = millstream.call(call), millstream.call(call)

    assert [delivery.body for delivery in first] == [b"0", b"1"]
    assert [each.receipt_handle for each in again] == [each.receipt_handle for each in first]


def test_repeated_deduplication_id_adds_nothing(fifo):
    first = fifo.send("one", group="a", dedup_id="1")
    again = fifo.send("other", group="a", dedup_id="1")

    assert (again.id, again.offset, again.duplicate) == (first.id, first.offset, True)
    assert counts(fifo) == {"ready": 1, "deduplicated": 1}


def test_content_deduplicates_if_configured(millstream, name):
    queue = millstream.queue(name)
    queue.create(type="fifo", deduplicate_by_content=True)

    sent = [queue.send(body, group="a") for body in ("one", "one", "two")]

    assert [message.duplicate for message in sent] == [False, True, False]


def test_key_with_other_content_is_rejected(orders):
    orders.send("one", idempotency_key="once")

    with pytest.raises(BadRequest) as refused:
        orders.send("two", idempotency_key="once")

    assert refused.value.code == "idempotency_key_reused"


def test_settled_message_is_rejected_by_what_it_was(orders):
    orders.send_many(["a", "b"])
    first, second = orders.receive(2)
    first.ack()
    second.reject("never")

    codes = []
    for settle in (first.nack, second.nack, second.release):
        with pytest.raises(ItemRefused) as refused:
            settle()
        codes.append(refused.value.code)

    assert codes == ["message_not_found"] * 3


def test_handle_of_another_queue_is_invalid(millstream, orders, name):
    other = millstream.queue(f"{name}-other")
    other.create()
    orders.send("hello")

    [result] = other.ack(orders.receive())

    assert isinstance(result, ItemRefused)
    assert result.code == "receipt_handle_invalid"


def test_unknown_message_is_not_found(orders):
    with pytest.raises(NotFound) as refused:
        orders.message("1b9e7f60-0000-8000-8000-000000000000")

    assert refused.value.code == "message_not_found"


def test_browsed_messages_show_their_state(orders):
    orders.send("flying", headers={"a": "b"})
    orders.receive()
    orders.send_many([NewMessage("later", delay_seconds=60), b"\xff", {"a": 1}])

    messages = {message.offset: message for message in orders.browse()}

    assert [str(messages[offset].state) for offset in range(4)] == [
        "in_flight",
        "delayed",
        "ready",
        "ready",
    ]
    assert messages[0].headers.to_dict() == {"a": "b"}
    assert (messages[2].body_base64, messages[3].body) == ("/w==", {"a": 1})
    assert [message.offset for message in orders.browse("delayed")] == [1]


@pytest.mark.parametrize(
    ("config", "code", "pointer"),
    [
        ({"attempt_max": 3}, "unknown_field", "/attempt_max"),
        ({"attempts_max": "three"}, "invalid", "/attempts_max"),
        ({"type": "fifo"}, "immutable", "/type"),
        ({"deduplicate_by_content": True}, "not_supported", "/dedup_scope"),
    ],
)
def test_invalid_configuration_is_rejected(orders, config, code, pointer):
    with pytest.raises(BadRequest) as refused:
        orders.apply(**config)

    assert refused.value.code == "validation_failed"
    assert [(fault.code, fault.pointer) for fault in refused.value.errors] == [(code, pointer)]


@pytest.mark.parametrize(
    ("options", "code", "pointer"),
    [
        ({}, "required", "/group"),
        ({"group": "a", "delay_seconds": 1}, "not_supported", "/delay_seconds"),
        ({"group": "a", "priority": 1}, "not_supported", "/priority"),
    ],
)
def test_message_that_fifo_cannot_have_is_rejected(fifo, options, code, pointer):
    with pytest.raises(BadRequest) as refused:
        fifo.send("hello", **options)

    assert [(fault.code, fault.pointer) for fault in refused.value.errors] == [(code, pointer)]


def test_large_message_is_rejected(millstream, name):
    queue = millstream.queue(name)
    queue.create(message_bytes_max=1_024)

    with pytest.raises(BadRequest) as refused:
        queue.send("x" * 1_100)

    assert refused.value.code == "message_too_large"
