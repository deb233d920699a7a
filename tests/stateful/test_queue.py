"""A queue compared with its reference after every step of any verbs and any time."""

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from storage.domain.errors import GroupNotParked, IdempotencyKeyReused, MessageNotFound
from storage.domain.limits import PARTITION_OFFSETS
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.dead_letter_origin import DeadLetterOrigin, origin_of
from storage.domain.queues.history import MessageEventType
from storage.domain.queues.message import NewMessage, SettleAction, Settlement
from storage.domain.queues.policies import PoisonPolicy
from storage.domain.queues.queue import DeadLetterTarget, DedupScope, QueueSpec, QueueType
from storage.domain.streams.stream import ReadFrom
from tests.queue_model import Message, ReferenceQueue
from tests.stateful.conftest import ON_BOTH_STORES, Bench

BODIES = st.binary(min_size=1, max_size=3)
GROUPS = st.sampled_from(["a", "b", "c"])
DEDUP_IDS = st.sampled_from(["", "", "x", "y"])
DELAYS_MS = st.sampled_from([0, 0, 0, 1, 700, 30_000])
TIMES_MS = st.sampled_from([0, 1, 1_000, 5_000, 30_000])
STEPS_MS = st.sampled_from([1, 699, 1_000, 4_000, 30_000, 299_999, 400_000])
TTLS_MS = st.sampled_from([0, 0, 0, 500, 2_000, 40_000])
KEYS = st.sampled_from(["", "", "", "k1", "k2"])
REASONS = st.sampled_from(["", "", "bad", "worse"])


_BEGINNINGS = (MessageEventType.SENT, MessageEventType.REDRIVEN)
_COUNTED = (
    (MessageEventType.DELIVERED,),
    (MessageEventType.NACKED, MessageEventType.REJECTED),
    (MessageEventType.LEASE_ENDED,),
)
"""The changes that are receives, failures and crashes."""


class QueueMachine(RuleBasedStateMachine):
    """Q1 to Q10, by comparison with a model that satisfies them by construction."""

    handles = Bundle("handles")
    type = QueueType.STANDARD
    history = True
    partitions = 1

    def __init__(self, bench: Bench) -> None:
        super().__init__()
        self.bench = bench
        self.queues = bench.storage.queues
        self.storage = bench.storage

    def make(self, **spec_of_machine: Any) -> None:
        spec = QueueSpec(
            type=self.type,
            retention_ms=600_000,
            dead_letter_retention_ms=900_000,
            history=self.history,
            partitions=self.partitions,
            **spec_of_machine,
        )
        self.name = QueueName(self.bench.new_name("queue"))
        self.bench.run(self.bench.storage.catalog.put_queue(self.name, spec))
        self.model = ReferenceQueue(spec, self.bench.clock.now_ms())

    def send_all(self, messages: list[tuple[bytes, int, str, str, int, int]], key: str) -> None:
        new = [
            NewMessage(
                body,
                group=group,
                dedup_id=dedup_id,
                delay_ms=delay_ms or None,
                ttl_ms=ttl_ms,
                priority=priority,
            )
            for body, delay_ms, group, dedup_id, ttl_ms, priority in messages
        ]
        try:
            sent = self.bench.run(self.queues.send(self.name, new, idempotency_key=key))
        except IdempotencyKeyReused:
            assert self.model.send(messages, key) is None
            return
        if self.partitions > 1:
            self.model.coming = [message.offset for message in sent if not message.duplicate]
        expected = self.model.send(messages, key)
        assert [(message.offset, message.duplicate) for message in sent] == expected

    @rule(target=handles, messages_max=st.integers(1, 4), visibility_timeout_ms=TIMES_MS)
    def receive(self, messages_max: int, visibility_timeout_ms: int) -> Any:
        self.model.settle_time()
        self.depart(messages_max)

        received = self.bench.run(
            self.queues.receive(
                self.name, messages_max=messages_max, visibility_timeout_ms=visibility_timeout_ms
            )
        )

        self.check_order([message.offset for message in received], messages_max)
        for message in received:
            known = self.model.take(message.offset, visibility_timeout_ms, message.receipt_handle)
            assert message.body == known.body
            assert message.group == known.group
            counts = (message.receive_count, message.failures, message.crash_count)
            assert counts == (known.receive_count, known.failures, known.crash_count)
        return multiple(*((message.offset, message.receipt_handle) for message in received))

    def depart(self, messages_max: int) -> None:
        """Remove from the model what the next receive dead-letters."""

    def check_order(self, offsets: list[int], messages_max: int) -> None:
        expected = [message.offset for message in self.model.ready()][:messages_max]
        assert offsets == expected

    @rule(
        handle=handles,
        action=st.sampled_from(SettleAction),
        time_ms=TIMES_MS,
        reason=REASONS,
    )
    def settle(
        self, handle: tuple[int, str], action: SettleAction, time_ms: int, reason: str
    ) -> None:
        self.settle_one(handle, action, time_ms, reason)

    @rule(handle=consumes(handles))
    def acknowledge(self, handle: tuple[int, str]) -> None:
        self.settle_one(handle, SettleAction.ACK, 0)

    def settle_one(
        self, handle: tuple[int, str], action: SettleAction, time_ms: int, reason: str = ""
    ) -> None:
        offset, receipt_handle = handle
        self.model.settle_time()
        extends = action is SettleAction.EXTEND
        settlement = Settlement(
            receipt_handle,
            action,
            delay_ms=0 if extends else time_ms,
            visibility_timeout_ms=time_ms if extends else 0,
            reason=reason,
        )

        [settled] = self.bench.run(self.queues.settle(self.name, [settlement]))

        expected = self.model.settle(offset, receipt_handle, action, time_ms, reason)
        assert (settled.error or "ok") == expected

    @rule(step_ms=STEPS_MS)
    def advance(self, step_ms: int) -> None:
        self.bench.clock.advance(step_ms)
        self.model.now_ms += step_ms

    @rule()
    def sweep(self) -> None:
        self.bench.run(self.queues.sweep(self.name))

    @rule()
    def redrive(self) -> None:
        self.model.settle_time()
        assert self.bench.run(self.storage.dead_letters.redrive(self.name)) == self.model.redrive()

    @rule(offset=st.integers(0, 12))
    def drop(self, offset: int) -> None:
        self.model.settle_time()
        self.bench.run(self.queues.sweep(self.name))
        offset = [*self.model.sent, *range(offset + 1)][offset]
        expected = self.model.drop(offset)
        try:
            self.bench.run(self.storage.inspector.drop(self.name, str(offset)))
        except MessageNotFound:
            assert not expected
        else:
            assert expected

    @precondition(lambda self: len(self.model.messages) > 4)
    @rule()
    def purge(self) -> None:
        self.model.settle_time()
        assert self.bench.run(self.queues.purge(self.name)) == self.model.purge()

    @invariant()
    def counts_agree(self) -> None:
        self.model.settle_time()
        stats = self.bench.run(self.queues.stats(self.name))
        expected = self.model.stats()
        assert {name: getattr(stats, name) for name in expected} == expected
        gone = stats.acknowledged + stats.expired + stats.purged + stats.moved_out
        kept = stats.ready + stats.delayed + stats.in_flight + stats.dead_lettered + stats.parked
        assert stats.sent == kept + gone  # Q10

    @invariant()
    def browsing_shows_each_message_where_it_is(self) -> None:
        self.model.settle_time()
        found, last = self.bench.run(self.storage.inspector.browse(self.name, messages_max=1_000))
        shown = {
            result.offset: (result.body, result.state.value, result.receive_count)
            for result in found
        }
        known = {
            message.offset: (message.body, self.model.shown_state(message), message.receive_count)
            for message in self.model.messages.values()
            if message.state != "dead_lettered"
        }
        assert last is None
        assert shown == known
        assert [result.offset for result in found] == sorted(shown)

    @invariant()
    def dead_letters_state_why_they_died(self) -> None:
        self.model.settle_time()
        self.bench.run(self.queues.stats(self.name))  # what is due dies first
        letters, _ = self.bench.run(self.storage.dead_letters.browse(self.name, messages_max=1_000))
        shown = [(letter.offset, letter.reason, letter.last_failure_reason) for letter in letters]
        assert shown == [
            (message.offset, message.death_reason, message.last_failure[0])
            for message in sorted(self.model.messages.values(), key=lambda one: one.offset)
            if message.state == "dead_lettered"
        ]

    @invariant()
    def its_view_shows_everything_that_was_sent(self) -> None:
        if not self.model.spec.stream_view:
            return
        view = StreamName(self.name.name)
        for shard in range(self.partitions):
            reading = self.bench.storage.record_reader.read_shard(view, shard, ReadFrom(time_ms=0))
            read = self.bench.run(reading)
            first = shard * PARTITION_OFFSETS
            shown = [(first + at.offset, at.record.data) for at in read.records]
            sent = [one for one in self.model.sent.items() if one[0] // PARTITION_OFFSETS == shard]
            assert shown == sent[read.start :]
            assert read.tip == len(sent)

    @invariant()
    def histories_tell_where_each_message_is_and_how_it_came_there(self) -> None:
        if not self.history:
            return
        self.model.settle_time()
        for offset in self.model.sent:
            history = self.bench.run(self.storage.inspector.history(self.name, str(offset)))
            message = self.model.messages.get(offset)
            assert not history.truncated
            if message is None:
                assert history.state in ("gone", "moving"), history
                continue
            assert history.state == message.state, history
            types = [event.type for event in history.events]
            begun = max(nth for nth, type_ in enumerate(types) if type_ in _BEGINNINGS)
            after = history.events[begun:]
            counts = [sum(event.type in kinds for event in after) for kinds in _COUNTED]
            if not self.model.parked_before:
                assert counts == [message.receive_count, message.failures, message.crash_count], (
                    history
                )

    def teardown(self) -> None:
        """Check that everything left can be received and acknowledged (Q5)."""
        if not hasattr(self, "model"):
            return
        self.bench.clock.advance(31_000)
        self.model.now_ms += 31_000
        self.model.settle_time()
        for group in list(self.model.parked):
            self.resume_group(group)
        left = {
            message.offset
            for message in self.model.messages.values()
            if message.state != "dead_lettered"
        }
        while left:
            departing = {message.offset for message in self.model.depart(100)}
            received = self.bench.run(self.queues.receive(self.name, messages_max=100))
            left -= departing
            assert received or departing, left
            verdicts = [
                Settlement(message.receipt_handle, SettleAction.ACK) for message in received
            ]
            if verdicts:
                self.bench.run(self.queues.settle(self.name, verdicts))
            left -= {message.offset for message in received}

    def resume_group(self, group: str) -> None:
        self.model.settle_time()
        self.bench.run(self.queues.stats(self.name))  # what is due parks its group first
        waiting = self.model.resume(group)
        if waiting is None:
            with pytest.raises(GroupNotParked):
                self.bench.run(self.storage.parked_groups.resume(self.name, group))
        else:
            assert self.bench.run(self.storage.parked_groups.resume(self.name, group)) == waiting


class StandardQueueMachine(QueueMachine):
    """With a dead-letter queue, which receives messages after two receives, in order (Q9)."""

    RECEIVES_MAX = 2

    @initialize(attempts_max=st.sampled_from([None, 1, 3]), has_dead_letters=st.booleans())
    def create(self, attempts_max: int | None, has_dead_letters: bool) -> None:
        self.dead = QueueName(self.bench.new_name("dead"))
        self.waiting_dead: list[tuple[int, bytes, int, DeadLetterOrigin]] = []
        spec = QueueSpec(attempts_max=None, retention_ms=86_400_000)
        self.bench.run(self.bench.storage.catalog.put_queue(self.dead, spec))
        target = DeadLetterTarget(self.dead.name, self.RECEIVES_MAX) if has_dead_letters else None
        self.make(attempts_max=attempts_max, dead_letters=target)

    @rule(
        messages=st.lists(
            st.tuples(BODIES, DELAYS_MS, TTLS_MS, st.sampled_from([0, 0, 1, 9])),
            min_size=1,
            max_size=4,
        ),
        key=KEYS,
    )
    def send(self, messages: list[tuple[bytes, int, int, int]], key: str) -> None:
        self.send_all(
            [(body, delay, "", "", ttl, level) for body, delay, ttl, level in messages], key
        )

    def depart(self, messages_max: int) -> None:
        for message in self.model.depart(messages_max):
            self.waiting_dead.append(
                (message.priority, message.body, message.receive_count + 1, self.origin(message))
            )

    def origin(self, message: Message) -> DeadLetterOrigin:
        return DeadLetterOrigin(
            source=f"queue:{self.name.name}",
            reason=message.departure_reason,
            died_at_ms=self.model.now_ms,
            failures=message.failures,
            crash_count=message.crash_count,
            last_failure_reason=message.last_failure[0],
        )

    @rule(messages_max=st.integers(1, 4))
    def receive_dead(self, messages_max: int) -> None:
        received = self.bench.run(self.queues.receive(self.dead, messages_max=messages_max))
        verdicts = [Settlement(message.receipt_handle, SettleAction.ACK) for message in received]
        if verdicts:
            self.bench.run(self.queues.settle(self.dead, verdicts))

        self.waiting_dead.sort(key=lambda waiting: -waiting[0])  # and by arrival within a priority
        expected, self.waiting_dead = (
            self.waiting_dead[:messages_max],
            self.waiting_dead[messages_max:],
        )
        shown = [
            (message.body, message.receive_count, origin_of(message.system)) for message in received
        ]
        assert shown == [waiting[1:] for waiting in expected]
        assert {message.dead_letter_source for message in received} <= {self.name.name}


class GroupedQueueMachine(QueueMachine):
    """A standard queue with message groups: fair, and never locked. History is off."""

    history = False

    @initialize(attempts_max=st.sampled_from([None, 3]), stream_view=st.booleans())
    def create(self, attempts_max: int | None, stream_view: bool) -> None:
        self.make(attempts_max=attempts_max, stream_view=stream_view)

    @rule(
        messages=st.lists(
            st.tuples(BODIES, DELAYS_MS, st.sampled_from(["", "a", "b"]), TTLS_MS),
            min_size=1,
            max_size=4,
        ),
        key=KEYS,
    )
    def send(self, messages: list[tuple[bytes, int, str, int]], key: str) -> None:
        self.send_all(
            [(body, delay, group, "", ttl, 0) for body, delay, group, ttl in messages], key
        )

    def check_order(self, offsets: list[int], messages_max: int) -> None:
        """Check fairness and order.

        Of each group, and of messages without one, the first ready ones are received, up to the
        limit; no group has more than its share while others wait.
        """
        ready = self.model.ready()
        assert len(offsets) == min(messages_max, len(ready))
        taken = {}
        for group in ("", "a", "b"):
            waiting = [message.offset for message in ready if message.group == group]
            if group:
                waiting.sort()
            mine = [offset for offset in offsets if offset in waiting]
            assert mine == waiting[: len(mine)]
            taken[group] = len(mine), len(waiting)
        (a, a_waiting), (b, b_waiting) = taken["a"], taken["b"]
        assert a <= b + 1 or b == b_waiting
        assert b <= a + 1 or a == a_waiting


class FifoQueueMachine(QueueMachine):
    type = QueueType.FIFO

    @initialize(
        attempts_max=st.sampled_from([None, 1, 3]),
        delay_ms=st.sampled_from([0, 0, 700]),
        dedup_scope=st.sampled_from(DedupScope),
        deduplicate_by_content=st.booleans(),
        on_poison=st.sampled_from(PoisonPolicy),
        stream_view=st.booleans(),
    )
    def create(self, **spec: Any) -> None:
        self.make(**spec)

    @rule(
        messages=st.lists(st.tuples(BODIES, GROUPS, DEDUP_IDS, TTLS_MS), min_size=1, max_size=4),
        key=KEYS,
    )
    def send(self, messages: list[tuple[bytes, str, str, int]], key: str) -> None:
        self.send_all(
            [(body, 0, group, dedup, ttl, 0) for body, group, dedup, ttl in messages], key
        )

    @rule(group=GROUPS)
    def resume(self, group: str) -> None:
        self.resume_group(group)

    @rule(delay_ms=st.sampled_from([0, 700, 5_000]))
    def redelay(self, delay_ms: int) -> None:
        self.model.settle_time()
        self.bench.run(self.queues.stats(self.name))
        before_ms = self.model.spec.delay_ms
        self.model.redelay(delay_ms)
        change = self.storage.catalog.change_queue(
            self.name, lambda spec: replace(spec, delay_ms=delay_ms)
        )
        self.bench.run(change)
        self.bench.run(self.storage.inspector.redelay(self.name, before_ms))

    @rule(group=GROUPS)
    def park(self, group: str) -> None:
        self.model.settle_time()
        self.bench.run(self.queues.stats(self.name))
        self.model.parked.setdefault(group, None)
        self.bench.run(self.storage.parked_groups.park(self.name, group, "by hand"))

    def check_order(self, offsets: list[int], messages_max: int) -> None:
        """Check that free groups yield their first messages in order, up to the limit (Q6)."""
        free = self.model.free_groups()
        assert len(offsets) == min(messages_max, sum(map(len, free.values())))
        for waiting in free.values():
            received_offsets = [offset for offset in offsets if offset in waiting]
            assert received_offsets == waiting[: len(received_offsets)]
        assert set(offsets) <= {offset for waiting in free.values() for offset in waiting}


class PartitionedMachine(QueueMachine):
    """A queue with partitions: each call gives what is first in some of them."""

    partitions = 3

    def check_order(self, offsets: list[int], messages_max: int) -> None:
        """Check that messages of each partition come in its order, and that some come if there are any."""
        lines = self.lines()
        assert len(offsets) <= messages_max
        assert bool(offsets) == any(lines)
        for line in lines:
            of_line = [offset for offset in offsets if offset in line]
            assert of_line == line[: len(of_line)]
        assert set(offsets) <= {offset for line in lines for offset in line}

    def lines(self) -> list[list[int]]:
        """Return the offsets that may be received, in the orders that hold."""
        ready = [message.offset for message in self.model.ready()]
        return [
            [offset for offset in ready if offset // PARTITION_OFFSETS == partition]
            for partition in range(self.partitions)
        ]


class PartitionedStandardMachine(PartitionedMachine, StandardQueueMachine):
    @initialize(attempts_max=st.sampled_from([None, 1, 3]), stream_view=st.booleans())
    def create(self, attempts_max: int | None, stream_view: bool) -> None:
        self.make(attempts_max=attempts_max, stream_view=stream_view)

    @rule(count=st.integers(1, 5))
    def change_partitions(self, count: int) -> None:
        self.bench.run(
            self.storage.catalog.change_queue(
                self.name, lambda spec: replace(spec, partitions=count)
            )
        )
        self.partitions = max(self.partitions, count)

    receive_dead = None  # type: ignore[assignment]  # not a rule: there is no dead-letter queue


class PartitionedFifoMachine(PartitionedMachine, FifoQueueMachine):
    @initialize(
        attempts_max=st.sampled_from([None, 1, 3]),
        delay_ms=st.sampled_from([0, 0, 700]),
        deduplicate_by_content=st.booleans(),
        on_poison=st.sampled_from(PoisonPolicy),
        stream_view=st.booleans(),
    )
    def create(self, **spec: Any) -> None:
        self.make(dedup_scope=DedupScope.GROUP, **spec)

    def send_all(self, messages: list[tuple[bytes, int, str, str, int, int]], key: str) -> None:
        # A key that is reused is refused where both calls have messages in one partition: here each content has its own.
        super().send_all(messages, f"{key} {messages}" if key else "")

    def lines(self) -> list[list[int]]:
        return [*self.model.free_groups().values()]

    redelay = None  # type: ignore[assignment]  # not a rule: a shorter delay holds in each partition by itself


@ON_BOTH_STORES
def test_partitioned_queue_matches_reference(bench):
    run_state_machine_as_test(lambda: PartitionedStandardMachine(bench), settings=bench.half)  # type: ignore[arg-type]  # a factory will do


@ON_BOTH_STORES
def test_partitioned_fifo_queue_matches_reference(bench):
    run_state_machine_as_test(lambda: PartitionedFifoMachine(bench), settings=bench.half)  # type: ignore[arg-type]  # a factory will do


@ON_BOTH_STORES
def test_standard_queue_matches_reference(bench):
    run_state_machine_as_test(lambda: StandardQueueMachine(bench), settings=bench.examples)  # type: ignore[arg-type]  # a factory will do


@ON_BOTH_STORES
def test_grouped_queue_matches_reference(bench):
    run_state_machine_as_test(lambda: GroupedQueueMachine(bench), settings=bench.examples)  # type: ignore[arg-type]  # a factory will do


@ON_BOTH_STORES
def test_fifo_queue_matches_reference(bench):
    run_state_machine_as_test(lambda: FifoQueueMachine(bench), settings=bench.examples)  # type: ignore[arg-type]  # a factory will do
