"""Browsing and changing the contents of a queue."""

import pytest

from storage.domain import limits
from storage.domain.errors import (
    MessageInFlight,
    MessageNotFound,
    MessageTooLarge,
    ValidationFailed,
)
from storage.domain.queues.message import (
    MessageState,
    NewMessage,
    SettleAction,
    Settlement,
    WhichDead,
)
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.record_filter import Filter
from storage.queues.engine import Queues
from storage.queues.message_filter import MessageFilter, selects_message
from tests.queue_operations import HOUR_MS, LINE, WORK, create_queue, receive, send, settle

# ── Browsing and dropping messages ──


async def test_browse_continues_after_offset(engines):
    queues = engines.queues
    await create_queue(engines, WORK)
    await send(queues, WORK, *[b"%d" % number for number in range(25)])
    seen: list[bytes] = []
    after: int | None = -1
    while after is not None:
        page, after = await engines.inspector.browse(WORK, after_offset=after, messages_max=10)
        seen += [message.body for message in page]

    assert seen == [b"%d" % number for number in range(25)]
    assert (await queues.stats(WORK)).ready == 25


async def test_browse_examines_bounded_number_of_messages(engines):
    queues = engines.queues
    await create_queue(engines, WORK)
    await send(queues, WORK, *[b"x"] * 999)
    await send(queues, WORK, b"ready", b"delayed", delay_ms=1_000)
    first, after = await engines.inspector.browse(WORK, state=MessageState.DELAYED)
    second, end = await engines.inspector.browse(
        WORK, state=MessageState.DELAYED, after_offset=after or 0
    )

    assert [message.body for message in [*first, *second]] == [b"ready", b"delayed"]
    assert (after, end) == (999, None)


async def test_browse_continues_through_messages_that_do_not_match(engines):
    queues = engines.queues
    await create_queue(engines, WORK)
    for first in (0, 600):
        numbers = range(first, first + 600)
        await send(queues, WORK, *[b'{"n": %d}' % (number % 3) for number in numbers])
    selects = selects_message(MessageFilter(record=Filter.of_terms((), (), ["/n=2"])))
    assert selects is not None
    first, after = await engines.inspector.browse(WORK, messages_max=2, selects=selects)
    second, scanned = await engines.inspector.browse(
        WORK, messages_max=500, selects=selects, after_offset=after or 0
    )
    last, end = await engines.inspector.browse(WORK, selects=selects, after_offset=scanned or 0)

    assert [message.offset for message in first] == [2, 5]
    assert [message.offset for message in [*second, *last]] == list(range(8, 1_200, 3))
    assert (after, end) == (5, None)


@pytest.mark.parametrize(
    ("text", "offsets"), [("NEEDLE", [0]), ("tRACE", [1]), ("Ann", [2]), ("gone", [])]
)
async def test_text_is_sought_as_in_records(engines, text, offsets):
    await create_queue(engines, LINE)
    await send(engines.queues, LINE, b"a needle", group="bob")
    await send(engines.queues, LINE, b"b", group="bob", headers=(("trace", "", b"1"),))
    await send(engines.queues, LINE, b"c", group="hannah")
    selects = selects_message(MessageFilter(text=text))

    messages, _ = await engines.inspector.browse(LINE, selects=selects)

    assert [message.offset for message in messages] == offsets


async def test_browse_keeps_order_of_messages_moved_out_of_log(engines):
    queues = engines.queues
    await create_queue(engines, WORK)
    await send(queues, WORK, b"first", delay_ms=HOUR_MS)
    for _ in range(2):
        await send(queues, WORK, *[b"x"] * 1_000)
        received = await queues.receive(WORK, messages_max=1_000)
        verdicts = [
            Settlement(each_message.receipt_handle, SettleAction.ACK) for each_message in received
        ]
        await queues.settle(WORK, verdicts)
    await queues.sweep(WORK)
    await send(queues, WORK, b"last")

    found, _ = await engines.inspector.browse(WORK)

    assert [message.body for message in found] == [b"first", b"last"]


async def test_message_is_found_by_id_and_by_offset(engines):
    queues = engines.queues
    await create_queue(engines, WORK)
    [first, second] = await queues.send(WORK, [NewMessage(b"1"), NewMessage(b"2")])

    by_id = await engines.inspector.show(WORK, second.message_id)
    by_offset = await engines.inspector.show(WORK, "0")

    assert (by_id.body, by_offset.message_id) == (b"2", first.message_id)
    for wrong in ("2", "-1", "x", "9" * 30, first.message_id[:-1] + "9", "0" * 32):
        with pytest.raises(MessageNotFound):
            await engines.inspector.show(WORK, wrong)


async def test_dropping_in_flight_message_unlocks_its_group(engines):
    queues = engines.queues
    await create_queue(engines, LINE)
    await send(queues, LINE, b"1", b"2", group="a")
    [first] = await queues.receive(LINE)

    await engines.inspector.drop(LINE, first.message_id)

    assert await receive(queues, LINE) == [b"2"]
    assert await settle(queues, LINE, first, SettleAction.ACK) is None  # it is gone already
    assert (await queues.stats(LINE)).purged == 1


async def test_dead_letter_can_be_dropped(engines):
    queues = engines.queues
    await engines.catalog.put_queue(WORK, QueueSpec(attempts_max=1))
    await send(queues, WORK, b"1")
    [message] = await queues.receive(WORK)
    await settle(queues, WORK, message, SettleAction.REJECT)

    await engines.inspector.drop(WORK, message.message_id)

    assert await engines.dead_letters.browse(WORK) == ([], None)
    with pytest.raises(MessageNotFound):
        await engines.inspector.drop(WORK, message.message_id)


# ── Dead letters by reason ──


async def died(queues: Queues, *deaths: tuple[bytes, str, str]) -> dict[bytes, str]:
    """Dead-letter messages (body, group, reason) in WORK; returns their ids."""
    ids = {}
    for body, group, reason in deaths:
        await send(queues, WORK, body, group=group)
        [message] = await queues.receive(WORK)
        verdict = Settlement(message.receipt_handle, SettleAction.REJECT, reason=reason)
        await queues.settle(WORK, [verdict])
        ids[body] = message.message_id
    return ids


async def test_dead_letters_are_counted_by_reason(engines, clock):
    queues = engines.queues
    await engines.catalog.put_queue(WORK, QueueSpec())
    since = clock.now_ms()
    await died(queues, (b"1", "", "typo"), (b"2", "", "gone"))
    clock.advance(ms=1_000)
    await died(queues, (b"3", "", "gone"))

    gone, typo = await engines.dead_letters.reasons(WORK)

    assert (gone.reason, gone.count, typo.reason, typo.count) == ("gone", 2, "typo", 1)
    assert (gone.first_died_at_ms, gone.last_died_at_ms) == (since, since + 1_000)


@pytest.mark.parametrize(
    ("which", "redriven"),
    [
        (WhichDead(), [b"1", b"2", b"3", b"4"]),
        (WhichDead(reason="gone"), [b"2", b"4"]),
        (WhichDead(group="a"), [b"1", b"2"]),
        (WhichDead(reason="gone", group="a"), [b"2"]),
        (WhichDead(references=("0", "3", "99", "x")), [b"1", b"4"]),
        (WhichDead(references=("x",)), []),
        (WhichDead(reason="other"), []),
    ],
)
async def test_redrive_selects_by_reason_group_and_id(engines, which, redriven):
    queues = engines.queues
    await engines.catalog.put_queue(WORK, QueueSpec())
    deaths = (b"1", "a", "typo"), (b"2", "a", "gone"), (b"3", "", "typo"), (b"4", "", "gone")
    await died(queues, *deaths)

    count = await engines.dead_letters.redrive(WORK, which)

    assert count == len(redriven)
    assert sorted(await receive(queues, WORK)) == redriven
    assert (await queues.stats(WORK)).dead_lettered == 4 - count


async def test_redrive_with_limit_starts_at_oldest_dead_letter(engines):
    queues = engines.queues
    await engines.catalog.put_queue(WORK, QueueSpec())
    ids = await died(queues, (b"1", "", "x"), (b"2", "", "y"), (b"3", "", "x"))

    first = await engines.dead_letters.redrive(WORK, WhichDead(reason="x"), messages_max=1)
    second = await engines.dead_letters.redrive(WORK, WhichDead(references=(ids[b"2"],)))

    assert (first, second) == (1, 1)
    assert await receive(queues, WORK) == [b"1", b"2"]


async def test_many_dead_letters_are_counted_and_redriven_in_rounds(engines):
    queues = engines.queues
    await engines.catalog.put_queue(WORK, QueueSpec())
    for _ in range(3):
        await send(queues, WORK, *[b"x"] * 900)
        received = await queues.receive(WORK, messages_max=1_000)
        verdicts = [
            Settlement(message.receipt_handle, SettleAction.REJECT, reason="bad")
            for message in received
        ]
        await queues.settle(WORK, verdicts)

    [bad] = await engines.dead_letters.reasons(WORK)
    redriven = await engines.dead_letters.redrive(WORK, messages_max=2_500)

    assert (bad.count, redriven) == (2_700, 2_500)
    assert (await queues.stats(WORK)).dead_lettered == 200


# ── Changing a message ──


async def test_ready_message_can_be_delayed_and_made_ready_again(engines, clock):
    queues = engines.queues
    await create_queue(engines, WORK)
    await send(queues, WORK, b"1", b"2")

    put_off = await engines.inspector.change(WORK, "0", delay_ms=5_000)
    meanwhile = await receive(queues, WORK)
    clock.advance(ms=5_000)
    due = await receive(queues, WORK)

    assert (put_off.state, put_off.due_at_ms) == (MessageState.DELAYED, clock.now_ms())
    assert (meanwhile, due) == ([b"2"], [b"1"])


async def test_delay_and_priority_change_independently(engines, clock):
    queues = engines.queues
    await create_queue(engines, WORK)
    await send(queues, WORK, b"plain")
    await send(queues, WORK, b"delayed", delay_ms=5_000)
    await engines.inspector.change(WORK, "1", priority=9)
    still = await engines.inspector.show(WORK, "1")
    clock.advance(ms=5_000)

    assert still.state is MessageState.DELAYED
    assert await receive(queues, WORK) == [b"delayed", b"plain"]


async def test_changed_message_keeps_its_group(engines, clock):
    queues = engines.queues
    await create_queue(engines, WORK)
    await send(queues, WORK, b"1", b"2", group="a")

    await engines.inspector.change(WORK, "0", delay_ms=1_000)
    first = await receive(queues, WORK)
    clock.advance(ms=1_000)

    assert (first, await receive(queues, WORK)) == ([b"2"], [b"1"])


async def test_change_of_unchangeable_message_is_rejected(engines):
    queues = engines.queues
    await create_queue(engines, WORK)
    await create_queue(engines, LINE)
    await send(queues, WORK, b"out")
    await send(queues, WORK, b"grouped", group="a")
    await send(queues, LINE, b"in line", group="a")
    await queues.receive(WORK, messages_max=1)
    in_flight = [
        one.offset for one in (await engines.inspector.browse(WORK))[0] if one.receive_count
    ]

    with pytest.raises(MessageInFlight):
        await engines.inspector.change(WORK, str(in_flight[0]), delay_ms=0)
    with pytest.raises(MessageNotFound):
        await engines.inspector.change(WORK, "7", delay_ms=0)
    with pytest.raises(ValidationFailed):
        await engines.inspector.change(WORK, "1", priority=3)
    with pytest.raises(ValidationFailed):
        await engines.inspector.change(LINE, "0", delay_ms=0)


async def test_changed_message_keeps_its_expiry(engines, clock):
    queues = engines.queues
    await create_queue(engines, WORK, retention_ms=60_000)
    await send(queues, WORK, b"1")
    await engines.inspector.change(WORK, "0", priority=1)
    clock.advance(ms=60_000)

    stats = await queues.stats(WORK)

    assert (stats.ready, stats.expired) == (0, 1)


@pytest.mark.parametrize("state", list(MessageState))
async def test_body_can_be_replaced_in_every_state(engines, clock, state):
    queues = engines.queues
    await create_queue(engines, LINE)
    headers = (("colour", "", b"red"),)
    first = NewMessage(b"before", headers, "text/plain", group="a")
    [sent] = await queues.send(LINE, [first])
    await send(queues, LINE, b"later", group="a")
    if state in (MessageState.IN_FLIGHT, MessageState.DELAYED):
        [message] = await queues.receive(LINE)
    if state is MessageState.DELAYED:
        await settle(queues, LINE, message, SettleAction.NACK, delay_ms=1_000)
    if state is MessageState.PARKED:
        await engines.parked_groups.park(LINE, "a", "")

    if state is MessageState.IN_FLIGHT:
        with pytest.raises(MessageInFlight):
            await engines.inspector.replace(LINE, sent.message_id, b"after")
        return
    await engines.inspector.replace(LINE, sent.message_id, b"after", "application/json")
    shown = await engines.inspector.show(LINE, sent.message_id)
    clock.advance(ms=1_000)
    if state is MessageState.PARKED:
        await engines.parked_groups.resume(LINE, "a")
    received = await queues.receive(LINE, messages_max=10)

    assert (shown.state, shown.body, shown.content_type) == (state, b"after", "application/json")
    assert [message.body for message in received] == [b"after", b"later"]
    assert received[0].headers == headers
    assert received[0].message_id == sent.message_id


async def test_body_can_be_replaced_repeatedly_and_keeps_its_position(engines):
    queues = engines.queues
    await create_queue(engines, WORK)
    await send(queues, WORK, b"1", b"2", b"3")

    for body in (b"two", b"zwei"):
        await engines.inspector.replace(WORK, "1", body)
    browsed, _ = await engines.inspector.browse(WORK)
    received = await queues.receive(WORK, messages_max=10)
    for message in received:
        await settle(queues, WORK, message, SettleAction.ACK)

    assert [message.body for message in browsed] == [b"1", b"zwei", b"3"]
    assert sorted(message.body for message in received) == [b"1", b"3", b"zwei"]
    assert (await queues.stats(WORK)).bytes_held == 0


async def test_dead_letter_with_replaced_body_is_redriven(engines):
    queues = engines.queues
    await create_queue(engines, WORK)
    await died(queues, (b"{", "", "not JSON"))

    await engines.inspector.replace(WORK, "0", b"{}")
    await engines.dead_letters.redrive(WORK)

    assert (await engines.inspector.browse(WORK))[0][0].body == b"{}"
    assert await receive(queues, WORK) == [b"{}"]


async def test_invalid_replacement_body_is_rejected(engines):
    await create_queue(engines, WORK, message_bytes_max=3)
    await send(engines.queues, WORK, b"1")

    with pytest.raises(MessageTooLarge):
        await engines.inspector.replace(WORK, "0", b"1234")
    with pytest.raises(ValidationFailed):
        await engines.inspector.replace(WORK, "0", b"")
    with pytest.raises(MessageNotFound):
        await engines.inspector.replace(WORK, "7", b"1")

    assert await receive(engines.queues, WORK) == [b"1"]


# ── Pages of large messages ──


async def test_page_of_large_messages_ends_early_and_continues(engines, monkeypatch):
    monkeypatch.setattr(limits, "BROWSE_BYTES_MAX", 2_500)
    await engines.catalog.put_queue(WORK, QueueSpec())
    bodies = [bytes([65 + number]) * 1_000 for number in range(8)]
    await send(engines.queues, WORK, *bodies)

    browsed = await pages(engines.inspector.browse)
    for message in await engines.queues.receive(WORK, messages_max=8):
        await settle(engines.queues, WORK, message, SettleAction.REJECT)
    dead = await pages(engines.dead_letters.browse)

    assert [len(page) for page in browsed] == [len(page) for page in dead] == [3, 3, 2]
    assert [one.body for page in browsed for one in page] == bodies
    assert [one.body for page in dead for one in page] == bodies


async def test_page_holds_at_least_one_message_however_large(engines, monkeypatch):
    monkeypatch.setattr(limits, "BROWSE_BYTES_MAX", 1)
    await engines.catalog.put_queue(WORK, QueueSpec())
    await send(engines.queues, WORK, b"large", b"larger")

    browsed = await pages(engines.inspector.browse)

    assert [[one.body for one in page] for page in browsed] == [[b"large"], [b"larger"]]


async def pages(look):
    """Read all pages of WORK that a verb returns."""
    actual_pages = []
    after: int | None = -1
    while after is not None:
        page, after = await look(WORK, after_offset=after)
        if page:
            actual_pages.append(page)
    return actual_pages


async def test_dead_letter_counts_by_reason_may_be_stale(engines, clock, monkeypatch):
    monkeypatch.setattr(limits, "DEATH_REASONS_COUNTED_MAX", 1)
    await engines.catalog.put_queue(WORK, QueueSpec())
    await died(engines.queues, (b"1", "", "typo"))

    fresh = await engines.dead_letters.recent_reasons(WORK, 1)
    await engines.dead_letters.recent_reasons(WORK, 2)
    await died(engines.queues, (b"2", "", "typo"))
    [known] = await engines.dead_letters.recent_reasons(WORK, 2)
    clock.advance(ms=limits.DEATH_REASONS_TTL_MS)
    [anew] = await engines.dead_letters.recent_reasons(WORK, 2)

    assert (fresh[0].count, known.count, anew.count) == (1, 1, 2)
