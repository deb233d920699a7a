"""Domain values that validate themselves: names, handles, ids and hash keys."""

import itertools
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.domain import limits
from storage.domain.errors import ErrorCode, MillstreamError, ReceiptHandleInvalid, ValidationFailed
from storage.domain.names import QueueName, StreamName, new_log_id
from storage.domain.queues.message import NewMessage, ReceiptHandle, message_id
from storage.domain.queues.queue import DeadLetterTarget, Queue, QueueSpec, QueueType
from storage.domain.streams.stream import (
    RING_SIZE,
    Shard,
    Stream,
    StreamSpec,
    even_ranges,
    hash_key,
)

LOG = "00ff00ff00ff00ff"
OFFSETS = st.integers(0, limits.OFFSET_MAX)


@pytest.mark.parametrize("name", ["a", "orders.fifo", "A-1_b.c", "x" * 80])
def test_valid_name_is_accepted(name):
    assert QueueName(name).name == name


@pytest.mark.parametrize("name", ["", "a/b", "x" * 81, "ä", "a b", ".", ".."])
def test_invalid_name_is_rejected(name):
    with pytest.raises(ValidationFailed):
        QueueName(name)


@given(OFFSETS, OFFSETS)
def test_message_ids_are_uuids_unique_per_offset(one, other):
    first, second = message_id(LOG, one), message_id(LOG, other)

    assert uuid.UUID(first).version == 8
    assert (first == second) == (one == other)


def test_message_ids_of_two_logs_differ():
    assert message_id(new_log_id(), 7) != message_id(new_log_id(), 7)


@given(OFFSETS, OFFSETS, st.integers(1, 10**6), OFFSETS)
def test_receipt_handle_round_trips(offset, arrival_ms, receives, received_ms):
    handle = ReceiptHandle(LOG, offset, arrival_ms, receives, received_ms)

    assert ReceiptHandle.decode(handle.encode(), LOG) == handle


@given(st.text(max_size=60))
def test_arbitrary_text_is_not_a_receipt_handle(garbage):
    with pytest.raises(ReceiptHandleInvalid):
        ReceiptHandle.decode(garbage, LOG)


def test_receipt_handle_of_other_queue_is_rejected():
    handle = ReceiptHandle(new_log_id(), 0, 0, 1, 0)

    with pytest.raises(ReceiptHandleInvalid):
        ReceiptHandle.decode(handle.encode(), LOG)


@given(st.integers(1, limits.SHARDS_MAX))
def test_even_ranges_cover_the_ring_without_gap_or_overlap(count):
    ranges = even_ranges(count)

    assert ranges[0][0] == 0
    assert ranges[-1][1] == RING_SIZE - 1
    assert all(last + 1 == first for (_, last), (first, _) in itertools.pairwise(ranges))


@given(st.text(max_size=20), st.integers(1, 16))
def test_key_maps_to_shard_whose_range_has_its_hash(key, count):
    shards = tuple(Shard(index, LOG, *edges, 0) for index, edges in enumerate(even_ranges(count)))
    stream = Stream(
        name=StreamName("s"),
        stream_id=LOG,
        spec=StreamSpec(),
        shards=shards,
        version=1,
        created_at_ms=0,
        changed_at_ms=0,
    )

    [shard] = stream.open_shards_for([key])

    assert shard.first_hash_key <= hash_key(key) <= shard.last_hash_key


def test_hash_key_is_md5_as_in_kinesis():
    assert hash_key("") == 0xD41D8CD98F00B204E9800998ECF8427E


@pytest.mark.parametrize(
    ("spec", "pointer"),
    [
        (QueueSpec(visibility_timeout_ms=-1), "/visibility_timeout_seconds"),
        (QueueSpec(delay_ms=-1), "/delay_seconds"),
        (QueueSpec(retention_ms=1), "/retention_seconds"),
        (QueueSpec(message_bytes_max=0), "/message_bytes_max"),
        (QueueSpec(attempts_max=1_001), "/attempts_max"),
        (QueueSpec(ttl_ms=-1), "/ttl_seconds"),
        (QueueSpec(receive_wait_ms=20_001), "/receive_wait_seconds"),
        (QueueSpec(in_flight_max=0), "/in_flight_max"),
        (QueueSpec(deduplicate_by_content=True), "/dedup_scope"),
        (QueueSpec(dead_letters=DeadLetterTarget("a/b", 1)), "/dead_letters/queue"),
        (QueueSpec(dead_letters=DeadLetterTarget("a", 0)), "/dead_letters/receives_max"),
        (QueueSpec(tags={"": "x"}), "/tags/"),
    ],
)
def test_invalid_queue_specification_is_rejected_with_pointer(spec, pointer):
    with pytest.raises(ValidationFailed) as refused:
        spec.check()

    assert [fault.pointer for fault in refused.value.faults] == [pointer]


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        (QueueType.STANDARD, NewMessage(b"")),
        (QueueType.STANDARD, NewMessage(b"x" * 11)),
        (QueueType.STANDARD, NewMessage(b"x", dedup_id="d")),
        (QueueType.STANDARD, NewMessage(b"x", delay_ms=3_650 * 86_400_000 + 1)),
        (QueueType.STANDARD, NewMessage(b"x", headers=((":group", "", b"g"),))),
        (QueueType.STANDARD, NewMessage(b"x", priority=10)),
        (QueueType.STANDARD, NewMessage(b"x", priority=1, group="g")),
        (QueueType.FIFO, NewMessage(b"x")),
        (QueueType.FIFO, NewMessage(b"x", group="g", delay_ms=1)),
        (QueueType.FIFO, NewMessage(b"x", group="g" * 129)),
    ],
)
def test_invalid_message_is_rejected_by_queue(type_, message):
    queue = Queue(
        name=QueueName("q"),
        log_id=LOG,
        spec=QueueSpec(type=type_, message_bytes_max=10),
        version=1,
        created_at_ms=0,
        changed_at_ms=0,
    )

    with pytest.raises(MillstreamError):
        queue.check_message(message)


def test_every_error_has_its_own_code_and_a_sentence():
    kinds = list(_leaves(MillstreamError))

    assert {kind.code for kind in kinds} == set(ErrorCode)
    assert all(
        (kind.__doc__ or "").split("\n")[0].endswith((".", "happened", "effect")) for kind in kinds
    )


def _leaves(kind: type[MillstreamError]) -> list[type[MillstreamError]]:
    found = [leaf for child in kind.__subclasses__() for leaf in [child, *_leaves(child)]]
    return [leaf for leaf in found if leaf.__module__.startswith("storage.domain.errors.")]
