"""What the client does when answers are lost: what may be repeated is, what may not is called unknown, nothing is doubled."""

from collections.abc import Iterator

import pytest

from millstream_client import (
    AsyncMillstream,
    ConnectionFailed,
    Millstream,
    OutcomeUnknown,
    Retries,
    TimedOut,
)
from tests.contract.sdk.losing import Losing, losing

FAST = Retries(seconds=10, first_pause_s=0.001, longest_pause_s=0.01)


@pytest.fixture(scope="module")
def proxy(service_url: str) -> Iterator[Losing]:
    with losing(service_url) as found:
        yield found


@pytest.fixture
def lossy(proxy: Losing) -> Iterator[Millstream]:
    """A client behind the proxy, which retries without waiting for long."""
    proxy.lose, proxy.refuse = 0, False
    with Millstream(proxy.url, retries=FAST) as client:
        yield client


def test_a_send_whose_answers_are_lost_is_one_message(proxy, lossy, orders):
    queue = lossy.queue(orders.name)
    queue.send("first")
    proxy.lose = 3

    sent = queue.send("second")

    assert (sent.offset, sent.duplicate) == (1, True)
    assert [message.body for message in orders.browse()] == ["first", "second"]


def test_a_batch_whose_answer_is_lost_is_there_once(proxy, lossy, orders):
    proxy.lose = 1

    sent = lossy.queue(orders.name).send_many(["a", "b", "c"])

    assert [message.id for message in orders.browse()] == [one.id for one in sent]


def test_records_whose_answer_is_lost_are_there_once(proxy, lossy, clicks):
    proxy.lose = 2

    put = lossy.stream(clicks.name).put_many(["a", "b", "c"], key="one")

    assert [one.offset for one in put] == [0, 1, 2]
    assert [record.text for record in clicks.read()] == ["a", "b", "c"]


def test_what_a_repeat_would_do_twice_is_not_repeated(proxy, lossy, clicks, orders):
    proxy.lose = 1
    with pytest.raises(OutcomeUnknown) as unknown:
        lossy.stream(clicks.name).put_to_shard(0, ["a"])
    orders.send("hello")
    proxy.lose = 1
    with pytest.raises(OutcomeUnknown):
        lossy.queue(orders.name).purge()

    assert unknown.value.outcome_unknown
    assert len(list(clicks.read())) == 1
    assert orders.stats().purged == 1


def test_a_producer_makes_a_put_to_a_shard_repeatable(proxy, lossy, clicks):
    proxy.lose = 2
    producer = {"id": "importer", "epoch": 0, "sequence": 0}

    put = lossy.stream(clicks.name).put_to_shard(0, ["a"], producer=producer)

    assert put[0].duplicate
    assert len(list(clicks.read())) == 1


def test_an_expected_offset_that_was_ours_is_unknown_not_refused(proxy, lossy, clicks):
    """The repeat adds nothing, and what it hears does not tell whether the first one did."""
    proxy.lose = 1

    with pytest.raises(OutcomeUnknown, match="offset_mismatch"):
        lossy.stream(clicks.name).put_to_shard(0, ["a"], expected_offset=0)

    assert len(list(clicks.read())) == 1


def test_an_acknowledgement_whose_answer_is_lost_is_done(proxy, lossy, orders):
    orders.send("hello")
    [message] = lossy.queue(orders.name).receive()
    proxy.lose = 1

    message.ack()

    assert orders.stats().acknowledged == 1


def test_a_fifo_queue_gives_the_same_messages_to_a_repeated_receive(proxy, lossy, millstream, name):
    queue = millstream.queue(name)
    queue.create(type="fifo", deduplicate_by_content=True)
    queue.send("hello", group="a")
    proxy.lose = 1

    [message] = lossy.queue(name).receive()

    assert (message.text, message.receives) == ("hello", 1)


def test_a_delete_whose_answer_is_lost_is_done(proxy, lossy, orders):
    proxy.lose = 1

    lossy.queue(orders.name).delete()


def test_a_replay_whose_answer_is_lost_is_begun_once(proxy, lossy, millstream, clicks, orders):
    clicks.put("a")
    proxy.lose = 1

    replay = lossy.replays.start(clicks.name, {"queue": orders.name})

    begun = [one.id for one in millstream.all_replays() if one.id == replay.name]
    assert begun == [replay.name]
    replay.cancel()


def test_a_service_that_cannot_be_reached_is_tried_until_time_is_up(service_url):
    with losing(service_url) as gone:
        url = gone.url
    quick = Retries(seconds=0.05, first_pause_s=0.01)

    with Millstream(url, retries=quick) as client, pytest.raises(ConnectionFailed) as failed:
        client.queue("orders").purge()

    assert not failed.value.outcome_unknown


async def test_the_asynchronous_client_doubles_nothing_either(proxy, service_url, orders):
    proxy.lose = 2
    async with AsyncMillstream(proxy.url, retries=FAST) as client:
        sent = await client.queue(orders.name).send("hello")

    assert sent.duplicate
    assert orders.stats().ready == 1


def test_an_outcome_that_the_service_does_not_know_is_an_error_of_its_own():
    from millstream_client.errors import refusal

    problem = {"code": "storage_timeout", "retryable": True, "outcome": "unknown", "detail": "?"}

    error = refusal(504, problem)

    assert isinstance(error, TimedOut)
    assert error.outcome_unknown
