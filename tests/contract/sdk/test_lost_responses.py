"""Lost responses: the client retries what is idempotent, and reports the rest as unknown."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from millstream_client import (
    AsyncMillstream,
    ConnectionFailed,
    Millstream,
    OutcomeUnknown,
    Retries,
    TimedOut,
)
from tests.contract.sdk.lossy_proxy import LossyProxy, running_lossy_proxy

FAST = Retries(seconds=10, first_pause_s=0.001, longest_pause_s=0.01)


@pytest.fixture(scope="module")
def proxy(service_url: str) -> Iterator[LossyProxy]:
    with running_lossy_proxy(service_url) as found:
        yield found


@pytest.fixture
def lossy(proxy: LossyProxy) -> Iterator[Millstream]:
    """A client behind the proxy, with short retry delays."""
    proxy.lose, proxy.refuse = 0, False
    with Millstream(proxy.url, retries=FAST) as client:
        yield client


def test_send_with_lost_responses_adds_one_message(proxy, lossy, orders):
    queue = lossy.queue(orders.name)
    queue.send("first")
    proxy.lose = 3

    sent = queue.send("second")

    assert (sent.offset, sent.duplicate) == (1, True)
    assert [message.body for message in orders.browse()] == ["first", "second"]


def test_batch_with_lost_response_is_added_once(proxy, lossy, orders):
    proxy.lose = 1

    sent = lossy.queue(orders.name).send_many(["a", "b", "c"])

    assert [message.id for message in orders.browse()] == [each_message.id for each_message in sent]


def test_records_with_lost_response_are_added_once(proxy, lossy, clicks):
    proxy.lose = 2

    put = lossy.stream(clicks.name).put_many(["a", "b", "c"], key="one")

    assert [one.offset for one in put] == [0, 1, 2]
    assert [record.text for record in clicks.read()] == ["a", "b", "c"]


def test_create_with_lost_response_returns_object(proxy, lossy, name):
    """The repeat met the queue that the first attempt had created: OutcomeUnknown."""
    proxy.lose = 1

    stored = lossy.queue(name).create(attempts_max=3)

    assert (stored.attempts_max, stored.created) == (3, False)
    proxy.lose = 1
    with pytest.raises(OutcomeUnknown):
        lossy.queue(f"{name}-new").create(only_new=True)


def test_following_from_latest_with_lost_response_skips_nothing(proxy, lossy, clicks):
    """A record that arrived during the first call was skipped if its response was lost."""
    following = lossy.stream(clicks.name).read("latest", follow=True)
    proxy.lose = 1

    with ThreadPoolExecutor(1) as reader:
        record = reader.submit(next, following)
        time.sleep(0.5)  # the first call has been answered, or waits for a record
        clicks.put("first", key="one")
        time.sleep(0.5)
        clicks.put("second", key="one")

        assert record.result().text == "first"


def test_non_idempotent_call_is_not_retried(proxy, lossy, clicks, orders):
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


def test_producer_makes_put_to_shard_retryable(proxy, lossy, clicks):
    proxy.lose = 2
    producer = {"id": "importer", "epoch": 0, "sequence": 0}

    put = lossy.stream(clicks.name).put_to_shard(0, ["a"], producer=producer)

    assert put[0].duplicate
    assert len(list(clicks.read())) == 1


def test_expected_offset_conflict_on_retry_is_outcome_unknown(proxy, lossy, clicks):
    """The retry adds nothing, and its error does not tell whether the first call did."""
    proxy.lose = 1

    with pytest.raises(OutcomeUnknown, match="offset_mismatch"):
        lossy.stream(clicks.name).put_to_shard(0, ["a"], expected_offset=0)

    assert len(list(clicks.read())) == 1


def test_ack_with_lost_response_is_done(proxy, lossy, orders):
    orders.send("hello")
    [message] = lossy.queue(orders.name).receive()
    proxy.lose = 1

    message.ack()

    assert orders.stats().acknowledged == 1


def test_retried_receive_from_fifo_queue_returns_same_messages(proxy, lossy, millstream, name):
    queue = millstream.queue(name)
    queue.create(type="fifo", deduplicate_by_content=True)
    queue.send("hello", group="a")
    proxy.lose = 1

    [message] = lossy.queue(name).receive()

    assert (message.text, message.receive_count) == ("hello", 1)


def test_delete_with_lost_response_is_done(proxy, lossy, orders):
    proxy.lose = 1

    lossy.queue(orders.name).delete()


def test_replay_with_lost_response_is_started_once(proxy, lossy, millstream, clicks, orders):
    clicks.put("a")
    proxy.lose = 1

    replay = lossy.replays.start(clicks.name, {"queue": orders.name})

    begun = [one.id for one in millstream.all_replays() if one.id == replay.name]
    assert begun == [replay.name]
    replay.cancel()


def test_unreachable_service_is_retried_until_deadline(service_url):
    with running_lossy_proxy(service_url) as gone:
        url = gone.url
    quick = Retries(seconds=0.05, first_pause_s=0.01)

    with Millstream(url, retries=quick) as client, pytest.raises(ConnectionFailed) as failed:
        client.queue("orders").purge()

    assert not failed.value.outcome_unknown


async def test_async_client_duplicates_nothing(proxy, service_url, orders):
    proxy.lose = 2
    async with AsyncMillstream(proxy.url, retries=FAST) as client:
        sent = await client.queue(orders.name).send("hello")

    assert sent.duplicate
    assert orders.stats().ready == 1


def test_outcome_unknown_is_distinct_error():
    from millstream_client.errors import refusal

    problem = {"code": "storage_timeout", "retryable": True, "outcome": "unknown", "detail": "?"}

    error = refusal(504, problem)

    assert isinstance(error, TimedOut)
    assert error.outcome_unknown
