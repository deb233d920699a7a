"""Reasons of dead letters: every way to die, in a queue's own dead letters and in another queue."""

from collections.abc import Sequence

import pytest
from msgspec.structs import replace as _replace

from storage.bootstrap import Storage
from storage.domain.clock import ManualClock
from storage.domain.log.record_batch import RESERVED
from storage.domain.names import QueueName
from storage.domain.queues.dead_letter_origin import DeadLetterOrigin, origin_of
from storage.domain.queues.message import NewMessage, SettleAction
from storage.domain.queues.moves import MoveState
from storage.domain.queues.queue import DeadLetterTarget, QueueSpec
from tests.integration.queues.test_moves import until_over
from tests.queue_operations import DEAD, LINE, LOST, WORK, create_queue, settle

EXPIRE, NACK, SILENT_NACK, RELEASE, REJECT = "expire", "nack", "silent nack", "release", "reject"
_ACTIONS = {
    NACK: (SettleAction.NACK, "card stolen"),
    SILENT_NACK: (SettleAction.NACK, ""),
    RELEASE: (SettleAction.RELEASE, ""),
    REJECT: (SettleAction.REJECT, "not a card"),
}
OTHER = QueueName("other")

WAYS = {
    (NACK, NACK): ("card stolen", "card stolen", 2, 0, "card stolen"),
    (EXPIRE, EXPIRE): ("visibility timeout passed 2 times",) * 2 + (0, 2, ""),
    (EXPIRE, NACK): ("card stolen", "card stolen", 1, 1, "card stolen"),
    (NACK, EXPIRE): ("visibility timeout passed 1 times",) * 2 + (1, 1, "card stolen"),
    (NACK, SILENT_NACK): ("", "received 2 times", 2, 0, ""),
    (SILENT_NACK, SILENT_NACK): ("", "received 2 times", 2, 0, ""),
    (NACK, RELEASE): (None, "card stolen", 1, 0, "card stolen"),
    (RELEASE, RELEASE): (None, "received 2 times", 0, 0, ""),
    (NACK, REJECT): ("not a card", None, 2, 0, "not a card"),
    (REJECT,): ("not a card", None, 1, 0, "not a card"),
}
"""By what its consumers do: reason in its own queue, reason in another queue (None: does not die there that way),
failures, expired leases and the reason of the last nack or reject."""


@pytest.fixture(params=["standard", "fifo"])
def queues(request) -> tuple[QueueName, QueueName]:
    """A queue and the dead-letter queue of its type."""
    return (WORK, DEAD) if request.param == "standard" else (LINE, LOST)


async def consume(
    engines: Storage, clock: ManualClock, queue: QueueName, steps: Sequence[str]
) -> None:
    """Send a message and let consumers fail with it in these ways."""
    group = "a" if queue is LINE else ""
    await engines.queues.send(
        queue, [NewMessage(b"poison", headers=(("k", "", b"v"),), group=group)]
    )
    for step in steps:
        [message] = await engines.queues.receive(queue, visibility_timeout_ms=1_000)
        if step is EXPIRE:
            clock.advance(ms=1_000)
            continue
        action, reason = _ACTIONS[step]
        await settle(engines.queues, queue, message, action, reason=reason)
    await engines.queues.receive(queue)


@pytest.mark.parametrize("steps", [steps for steps, row in WAYS.items() if row[0] is not None])
async def test_own_dead_letter_states_why_it_died(engines, clock, queues, steps):
    work, _ = queues
    await create_queue(engines, work)
    await engines.catalog.change_queue(work, lambda spec: _replace(spec, attempts_max=2))
    await consume(engines, clock, work, steps)

    [letter], _ = await engines.dead_letters.browse(work)

    reason, _, failures, crashes, last = WAYS[steps]
    assert (letter.reason, letter.failures, letter.crash_count) == (reason, failures, crashes)
    assert letter.last_failure_reason == last
    assert [entry.reason for entry in await engines.dead_letters.reasons(work)] == [reason]


@pytest.mark.parametrize("steps", [steps for steps, row in WAYS.items() if row[1] is not None])
async def test_dead_letter_of_other_queue_states_why_it_died(engines, clock, queues, steps):
    work, dead = queues
    await create_queue(engines, dead)
    await create_queue(engines, work, dead_letters=DeadLetterTarget(dead.name, 2))
    await consume(engines, clock, work, steps)

    [browsed], _ = await engines.inspector.browse(dead)
    [letter] = await engines.queues.receive(dead)

    _, reason, failures, crashes, last = WAYS[steps]
    assert reason is not None
    expected = DeadLetterOrigin(
        source=f"queue:{work.name}",
        reason=reason,
        died_at_ms=clock.now_ms(),
        failures=failures,
        crash_count=crashes,
        last_failure_reason=last,
    )
    assert origin_of(letter.system) == browsed.dead_letter == expected
    assert letter.headers == (("k", "", b"v"),)
    assert (letter.failures, letter.crash_count, letter.receive_count) == (0, 0, 3)
    assert browsed.dead_letter_source == letter.dead_letter_source == work.name


@pytest.mark.parametrize("steps", [(REJECT,), (NACK, REJECT)])
async def test_rejected_message_stays_when_queue_has_other_target(engines, clock, queues, steps):
    work, dead = queues
    await create_queue(engines, dead)
    await create_queue(engines, work, dead_letters=DeadLetterTarget(dead.name, 5))
    await consume(engines, clock, work, steps)

    [letter], _ = await engines.dead_letters.browse(work)

    assert letter.reason == "not a card"


async def test_origin_is_replaced_by_next_dead_letter_queue(engines, clock):
    await create_queue(engines, OTHER)
    await create_queue(engines, DEAD, dead_letters=DeadLetterTarget("other", 3))
    await create_queue(engines, WORK, dead_letters=DeadLetterTarget("dead", 1))
    await consume(engines, clock, WORK, [NACK])
    [message] = await engines.queues.receive(DEAD, visibility_timeout_ms=1_000)
    clock.advance(ms=1_000)
    again = await engines.queues.receive(DEAD, visibility_timeout_ms=1_000)
    clock.advance(ms=1_000)
    await engines.queues.receive(DEAD)

    [letter] = await engines.queues.receive(OTHER)

    origin = origin_of(letter.system)
    assert origin is not None
    assert (len(again), message.dead_letter_source, letter.dead_letter_source) == (
        1,
        "work",
        "dead",
    )
    assert (origin.source, origin.reason) == ("queue:dead", "visibility timeout passed 2 times")
    assert len(letter.system) == 1


async def test_moved_message_has_no_origin(engines, clock):
    await create_queue(engines, DEAD)
    await create_queue(engines, WORK, dead_letters=DeadLetterTarget("dead", 1))
    await consume(engines, clock, WORK, [NACK])

    move = await until_over(engines, await engines.moves.start(DEAD))
    [message] = await engines.queues.receive(WORK)

    assert move.state is MoveState.COMPLETED
    assert (message.dead_letter_source, message.system) == ("", ())


async def test_redriven_message_forgets_its_last_failure(engines, clock):
    await engines.catalog.put_queue(WORK, QueueSpec(attempts_max=1))
    await consume(engines, clock, WORK, [NACK])
    await engines.dead_letters.redrive(WORK)
    await engines.queues.receive(WORK, visibility_timeout_ms=1_000)
    clock.advance(ms=1_000)
    await engines.queues.receive(WORK)

    [letter], _ = await engines.dead_letters.browse(WORK)

    assert (letter.reason, letter.last_failure_reason) == ("visibility timeout passed 1 times", "")


async def test_replaced_body_keeps_origin(engines, clock):
    await create_queue(engines, DEAD)
    await create_queue(engines, WORK, dead_letters=DeadLetterTarget("dead", 1))
    await consume(engines, clock, WORK, [NACK])
    [browsed], _ = await engines.inspector.browse(DEAD)

    await engines.inspector.replace(DEAD, str(browsed.offset), b"other", "")
    [letter] = await engines.queues.receive(DEAD)

    assert letter.body == b"other"
    assert origin_of(letter.system) == browsed.dead_letter
    assert all(name.startswith(RESERVED) for name, _, _ in letter.system)


async def test_details_of_failure_reaches_dead_letters(engines, clock):
    await create_queue(engines, DEAD)
    await create_queue(engines, WORK, dead_letters=DeadLetterTarget("dead", 2))
    for action in (SettleAction.NACK, SettleAction.REJECT):
        await engines.queues.send(WORK, [NewMessage(action.value.encode())])
        for _ in range(2 if action is SettleAction.NACK else 1):
            [message] = await engines.queues.receive(WORK)
            await settle(engines.queues, WORK, message, action, reason="500", details="disk full")
    await engines.queues.receive(WORK)

    [rejected], _ = await engines.dead_letters.browse(WORK)
    [nacked] = await engines.queues.receive(DEAD)

    origin = origin_of(nacked.system)
    assert origin is not None
    assert (rejected.reason, rejected.details) == ("500", "disk full")
    assert (origin.reason, origin.details) == ("500", "disk full")


async def test_dead_letter_queues_are_found_by_their_sources(engines):
    await create_queue(engines, DEAD)
    await create_queue(engines, WORK, dead_letters=DeadLetterTarget("dead", 1))

    targets = await engines.search.dead_letter_queues("default", ["dead", "work", "none"])

    assert targets == {"dead"}
