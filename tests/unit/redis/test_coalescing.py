"""The queue of calls that wait for a flush, and the distribution of replies."""

from collections.abc import Sequence
from typing import Any

import pytest

from storage.domain import limits
from storage.domain.errors import StorageBusy
from storage.hot_store.errors import StoreChanged
from storage.redis.transport.client import Reply
from storage.redis.transport.coalescing import FlushQueue
from storage.redis.transport.command import Command

STORE, OTHER_STORE = 1, 2
CALLERS_MAX = 2 * limits.FLUSH_CALLS_MAX


class Pairs:
    """Coalescer of two parts a command, whose replies are doubled."""

    key = b"key"

    def __init__(self, alike: str) -> None:
        self.alike = alike
        self.undone: list[Any] = []

    def commands(self, parts: Sequence[Any]) -> list[tuple[Command, int]]:
        runs = [parts[start : start + 2] for start in range(0, len(parts), 2)]
        return [((self.alike, *run), len(run)) for run in runs]

    def answers(self, parts: Sequence[Any], reply: Reply) -> Sequence[Any]:
        return [f"{reply} {part}" for part in parts]

    def abandoned(self, part: Any, answer: Any) -> None:
        self.undone.append((part, answer))


@pytest.fixture
async def queue() -> FlushQueue:
    return FlushQueue(CALLERS_MAX)


def gather(queue: FlushQueue, pairs: Pairs, part: Any, size_bytes: int = 1, weight: int = 1) -> Any:
    return queue.gather(pairs, part, size_bytes, weight, STORE)


async def test_equal_operations_share_commands_and_get_own_answers(queue):
    sends, others = Pairs("send"), Pairs("other")
    first, second, third = (gather(queue, sends, part) for part in "abc")
    call = queue.call(("GET",), STORE)
    other = gather(queue, others, "d")

    flush = queue.take()
    commands = flush.commands(STORE)
    flush.settle(["r1", "r2", "r3", "r4"])

    assert commands == [("send", "a", "b"), ("send", "c"), ("GET",), ("other", "d")]
    answers = [future.result() for future in (first, second, third, call, other)]
    assert answers == ["r1 a", "r1 b", "r2 c", "r3", "r4 d"]
    assert queue.weight == 0


async def test_error_reply_is_raised_to_every_caller_of_its_command(queue):
    sends = Pairs("send")
    first, second, third = (gather(queue, sends, part) for part in "abc")

    flush = queue.take()
    flush.commands(STORE)
    flush.settle([ValueError("refused"), "r2"])

    assert [type(future.exception()) for future in (first, second)] == [ValueError] * 2
    assert third.result() == "r2 c"


async def test_call_for_replaced_store_fails_and_is_not_sent(queue):
    stale, sends = queue.call(("GET",), STORE), Pairs("send")
    unbound = queue.call(("SET",), None)
    part = gather(queue, sends, "a")

    commands = queue.take().commands(OTHER_STORE)

    assert commands == [("SET",)]
    assert isinstance(stale.exception(), StoreChanged)
    assert isinstance(part.exception(), StoreChanged)
    assert not unbound.done()


async def test_part_of_caller_that_gave_up_is_not_sent(queue):
    sends = Pairs("send")
    first, second = gather(queue, sends, "a"), gather(queue, sends, "b")
    first.cancel()

    flush = queue.take()
    commands = flush.commands(STORE)
    flush.settle(["r1"])

    assert commands == [("send", "b")]
    assert second.result() == "r1 b"
    assert sends.undone == []


async def test_answer_to_caller_that_gave_up_meanwhile_is_undone(queue):
    sends = Pairs("send")
    first = gather(queue, sends, "a")

    flush = queue.take()
    flush.commands(STORE)
    first.cancel()
    flush.settle(["r1"])

    assert sends.undone == [("a", "r1 a")]


async def test_full_batch_is_followed_by_another(queue):
    sends = Pairs("send")
    gather(queue, sends, "a", size_bytes=limits.FLUSH_BYTES_MAX)
    gather(queue, sends, "b")

    assert queue.take().commands(STORE) == [("send", "a")]
    assert queue.take().commands(STORE) == [("send", "b")]


async def test_taken_batch_takes_no_more_parts(queue):
    sends = Pairs("send")
    gather(queue, sends, "a")
    flush = queue.take()
    gather(queue, sends, "b")

    assert flush.commands(STORE) == [("send", "a")]
    assert queue.take().commands(STORE) == [("send", "b")]


async def test_flush_has_limited_number_of_calls(queue):
    for number in range(limits.FLUSH_CALLS_MAX + 1):
        queue.call(("GET", number), STORE)

    sizes = [len(queue.take().commands(STORE)) for _ in range(2)]

    assert sizes == [limits.FLUSH_CALLS_MAX, 1]


async def test_call_is_rejected_while_too_many_wait():
    queue = FlushQueue(2)
    queue.call(("GET",), STORE)
    gather(queue, Pairs("send"), "a")
    with pytest.raises(StorageBusy):
        queue.call(("GET",), STORE)

    queue.take()

    assert not queue.call(("GET",), STORE).done()


async def test_failed_flush_keeps_the_answers_given_before(queue):
    answered, waiting = queue.call(("GET",), STORE), queue.call(("SET",), STORE)
    flush = queue.take()
    flush.commands(STORE)
    answered.set_result("earlier")

    flush.fail(ValueError("a bug"))

    assert answered.result() == "earlier"
    assert isinstance(waiting.exception(), ValueError)
