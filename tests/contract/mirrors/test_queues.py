"""Mirrors of queues: copies while the link or a puller fails, and promotions."""

import asyncio
from functools import partial
from typing import Any

import httpx
import pytest

from storage.domain.names import MirrorName
from tests.aws_clients import aws_client
from tests.conditions import eventually
from tests.contract.conftest import running_service
from tests.contract.mirrors.conftest import background_process, end_leases, environment_of

ROUNDS = 12


@pytest.fixture
def put_queue_mirror(copy, link):
    """Create a mirror of a queue."""

    async def put(queue: str, **fields: Any) -> dict[str, Any]:
        body = {"from": {"url": link.url}, "queues": [queue], **fields}
        answer = await copy.put(f"/v1/mirrors/{queue}", json=body)
        return dict(answer.raise_for_status().json())

    return put


async def _send(client: httpx.AsyncClient, queue: str, numbers: range, **options: Any) -> None:
    messages = [{"body": str(number), **options} for number in numbers]
    answer = await client.post(f"/v1/queues/{queue}/messages", json={"messages": messages})
    answer.raise_for_status()


async def _receive(client: httpx.AsyncClient, queue: str, messages_max: int) -> list[Any]:
    answer = await client.post(f"/v1/queues/{queue}/receive", json={"messages_max": messages_max})
    return list(answer.raise_for_status().json()["messages"])


async def _settle(
    client: httpx.AsyncClient, queue: str, action: str, messages: list[Any], **options: Any
) -> None:
    settlements = [
        {"receipt_handle": one["receipt_handle"], "action": action, **options} for one in messages
    ]
    answer = await client.post(f"/v1/queues/{queue}/settle", json={"settlements": settlements})
    answer.raise_for_status()


async def _numbers(client: httpx.AsyncClient, queue: str) -> list[int]:
    """Return the numbers of the messages in a queue; none while it does not exist."""
    numbers: list[int] = []
    cursor = ""
    while True:
        answer = await client.get(
            f"/v1/queues/{queue}/messages", params={"cursor": cursor, "limit": 500}
        )
        if answer.status_code == 404:
            return []
        page = answer.raise_for_status().json()
        numbers += [int(one["body"]) for one in page["items"]]
        if page["next_cursor"] is None:
            return numbers
        cursor = page["next_cursor"]


async def _by_id(client: httpx.AsyncClient, queue: str) -> list[tuple[str, int]]:
    """Return the id and number of each message in a queue; none while it does not exist."""
    answer = await client.get(f"/v1/queues/{queue}/messages", params={"limit": 500})
    items = [] if answer.status_code == 404 else answer.raise_for_status().json()["items"]
    return sorted((one["id"], int(one["body"])) for one in items)


async def _dead_letters(client: httpx.AsyncClient, queue: str) -> list[tuple[str, str, str]]:
    letters = (await client.get(f"/v1/queues/{queue}/dead-letters")).raise_for_status().json()
    return [(one["id"], one["body"], one["reason"]) for one in letters["items"]]


async def _promote(client: httpx.AsyncClient, mirror: str, **fields: Any) -> dict[str, Any]:
    answer = await client.post(f"/v1/mirrors/{mirror}/promotion", json=fields)
    return dict(answer.raise_for_status().json())


async def _failures(storage, mirror: str) -> list[str]:
    stored = await storage.mirrors.get(MirrorName(mirror))
    return list((await storage.mirrors.status(stored)).failures)


async def _error_of_send(client: httpx.AsyncClient, queue: str, **options: Any) -> str:
    """Send a message; return the code of the error, or nothing."""
    answer = await client.post(f"/v1/queues/{queue}/messages", json={"body": "1", **options})
    return str(answer.json().get("code", ""))


async def test_copy_follows_its_queue_while_link_and_pullers_fail(
    origin, copy, pullers, link, put_queue_mirror, stream_name
):
    queue = stream_name
    await origin.put(f"/v1/queues/{queue}", json={"attempts_max": 1})
    await put_queue_mirror(queue)
    sent = 0
    for number in range(ROUNDS):
        await _send(origin, queue, range(sent, sent + 20))
        sent += 20
        received = await _receive(origin, queue, 15)
        await _settle(origin, queue, "ack", received[:9])
        await _settle(origin, queue, "reject", received[9:11], reason="poison")
        if number % 4 == 1:
            link.abort()
        elif number % 4 == 2:
            await pullers.stop()
            pullers.start()
    await pullers.stop()
    pullers.start()

    left = await _numbers(origin, queue)
    await eventually(partial(_numbers, copy, queue), left)
    await eventually(partial(_dead_letters, copy, queue), await _dead_letters(origin, queue))
    stats = (await copy.get(f"/v1/queues/{queue}/stats")).json()
    definition = (await copy.get(f"/v1/queues/{queue}")).json()

    assert len(left) == ROUNDS * 9
    assert len(await _dead_letters(copy, queue)) == ROUNDS * 2
    assert (stats["fenced"], definition["paused"], definition["attempts_max"]) == (True, True, 1)
    assert await _receive(copy, queue, 10) == []
    assert await _error_of_send(copy, queue) == "fence_mismatch"


async def test_partitions_are_copied_each_and_promoted_together(
    origin, copy, pullers, put_queue_mirror, stream_name
):
    queue = f"{stream_name}.fifo"
    config = {"type": "fifo", "partitions": 4, "dedup_scope": "group"}
    await origin.put(f"/v1/queues/{queue}", json=config)
    for number in range(24):
        group = f"g{number % 8}"
        await _send(origin, queue, range(number, number + 1), group=group, dedup_id=str(number))
    await _settle(origin, queue, "ack", await _receive(origin, queue, 6))
    await put_queue_mirror(queue)
    await eventually(partial(_by_id, copy, queue), await _by_id(origin, queue))
    definition = (await copy.get(f"/v1/queues/{queue}")).json()
    await _settle(origin, queue, "ack", await _receive(origin, queue, 4))

    promoted = await _promote(copy, queue)
    left = await _by_id(origin, queue)

    assert (definition["partitions"], promoted["origin"]) == (4, "fenced")
    assert await _error_of_send(origin, queue, group="g1", dedup_id="new") == "fence_mismatch"
    assert await _by_id(copy, queue) == left
    taken: list[Any] = []
    while received := await _receive(copy, queue, 100):
        taken += received
        await _settle(copy, queue, "ack", received)
    assert sorted(int(one["body"]) for one in taken) == sorted(number for _, number in left)
    for group in {one["group"] for one in taken}:
        numbers = [int(one["body"]) for one in taken if one["group"] == group]
        assert numbers == sorted(numbers)


async def test_copy_follows_changes_of_number_of_partitions(
    origin, copy, pullers, put_queue_mirror, stream_name
):
    queue = stream_name
    await origin.put(f"/v1/queues/{queue}", json={"partitions": 4})
    for number in range(8):
        await _send(origin, queue, range(number, number + 1))
    await origin.patch(f"/v1/queues/{queue}", json={"partitions": 2})
    await put_queue_mirror(queue, follow_definitions=True)
    await eventually(partial(_by_id, copy, queue), await _by_id(origin, queue))

    await origin.patch(f"/v1/queues/{queue}", json={"partitions": 6})
    for number in range(8, 20):
        await _send(origin, queue, range(number, number + 1))
    left = await _by_id(origin, queue)
    await eventually(partial(_by_id, copy, queue), left)

    async def partitions() -> int:
        return int((await copy.get(f"/v1/queues/{queue}")).json()["partitions"])

    await eventually(partitions, 6)
    assert len(left) == 20


async def test_fifo_queue_with_other_number_of_partitions_is_refused(
    origin, copy, copy_storage, pullers, put_queue_mirror, stream_name
):
    """Only some partitions would be copied otherwise."""
    queue = f"{stream_name}.fifo"
    for client, partitions in ((copy, 2), (origin, 4)):
        config = {"type": "fifo", "dedup_scope": "group", "partitions": partitions}
        await client.put(f"/v1/queues/{queue}", json=config)
    await put_queue_mirror(queue)

    async def failure() -> str:
        status = await copy_storage.mirrors.status(
            await copy_storage.mirrors.get(MirrorName(queue))
        )
        return "".join(one.failure for one in status.queues)

    refused = f"Queue '{queue}' has 2 partitions here and 4 there: delete it to have it copied"
    await eventually(failure, refused)
    await copy.delete(f"/v1/queues/{queue}")

    await eventually(failure, "")


async def test_changes_of_missing_partition_are_refused(origin, stream_name):
    await origin.put(f"/v1/queues/{stream_name}", json={"partitions": 4})

    for path in ("changes", "contents"):
        last = await origin.get(f"/v1/queues/{stream_name}/{path}?partition=3")
        beyond = await origin.get(f"/v1/queues/{stream_name}/{path}?partition=4")

        assert last.status_code == 200
        assert (beyond.status_code, beyond.json()["code"]) == (422, "validation_failed")
        assert beyond.json()["errors"][0]["pointer"] == "/partition"


async def test_planned_promotion_of_a_queue_loses_and_repeats_nothing(
    origin, copy, mirrors, put_queue_mirror, stream_name
):
    """No background process runs: the promotion copies what is left by itself."""
    queue = f"{stream_name}.fifo"
    await origin.put(f"/v1/queues/{queue}", json={"type": "fifo"})
    for group in ("a", "b"):
        for number in range(10):
            await _send(
                origin, queue, range(number, number + 1), group=group, dedup_id=f"{group}{number}"
            )
    await _settle(origin, queue, "ack", await _receive(origin, queue, 4))
    await put_queue_mirror(queue)

    promoted = await _promote(copy, queue)
    delivered = await _receive(copy, queue, 100)

    assert (promoted["origin"], promoted["promoted_at"] is None) == ("fenced", False)
    assert await _error_of_send(origin, queue, group="a", dedup_id="x") == "fence_mismatch"
    assert await _receive(origin, queue, 10) == []
    assert len(delivered) == 16
    for group in ("a", "b"):
        numbers = [int(one["body"]) for one in delivered if one["group"] == group]
        assert numbers == sorted(numbers)
        assert numbers[-1] == 9
    assert not (await copy.get(f"/v1/queues/{queue}")).json()["paused"]
    assert await _error_of_send(copy, queue, group="a", dedup_id="x") == ""


async def test_queue_moves_back_with_what_happened_in_between(
    origin, copy, copy_storage, pullers, put_queue_mirror, service, copy_service, stream_name
):
    queue = stream_name
    await origin.put(f"/v1/queues/{queue}", json={})
    await _send(origin, queue, range(5))
    await put_queue_mirror(queue)
    await eventually(partial(_numbers, copy, queue), list(range(5)))
    await _promote(copy, queue)
    await _settle(copy, queue, "ack", await _receive(copy, queue, 2))
    await _send(copy, queue, range(5, 8))

    back = {"from": {"url": copy_service[0]}, "queues": [queue]}
    (await origin.put(f"/v1/mirrors/back-{queue}", json=back)).raise_for_status()
    try:
        promoted = await _promote(origin, f"back-{queue}")
    finally:
        await origin.delete(f"/v1/mirrors/back-{queue}")

    assert promoted["origin"] == "fenced"
    assert await _numbers(origin, queue) == list(range(2, 8))
    assert len(await _receive(origin, queue, 10)) == 6
    assert await _receive(copy, queue, 10) == []


async def test_queue_of_its_own_and_second_mirror_are_refused_by_name(
    origin, copy, copy_storage, pullers, link, put_queue_mirror, stream_name
):
    own, twice = f"{stream_name}-own", f"{stream_name}-twice"
    for queue in (own, twice):
        await origin.put(f"/v1/queues/{queue}", json={})
        await _send(origin, queue, range(3))
    await copy.put(f"/v1/queues/{own}", json={})
    await _send(copy, own, range(100, 101))
    await put_queue_mirror(own)
    await put_queue_mirror(twice)
    await eventually(partial(_numbers, copy, twice), [0, 1, 2])
    second = {"from": {"url": link.url}, "queues": [twice]}
    await copy.put(f"/v1/mirrors/{twice}-second", json=second)

    refused = f"Queue '{own}' accepts messages of its own here: delete it to have it copied"
    await eventually(partial(_failures, copy_storage, own), [refused])
    await eventually(
        partial(_failures, copy_storage, f"{twice}-second"),
        [f"Mirror '{twice}' copies this queue"],
    )
    assert await _numbers(copy, own) == [100]
    assert [one["body"] for one in await _receive(copy, own, 10)] == ["100"]


async def test_queue_that_cannot_be_created_does_not_keep_others_from_being_copied(
    origin, copy, copy_storage, pullers, put_queue_mirror, stream_name
):
    """Its dead-letter queue is not mirrored; that of another one is, and is created first."""
    names = [f"{stream_name}-{part}" for part in ("a", "b", "dead", "dead-of-a")]
    for name in names[2:]:
        await origin.put(f"/v1/queues/{name}", json={})
    for name, dead in zip(names[:2], (names[3], names[2]), strict=True):
        spec = {"dead_letters": {"queue": dead, "receives_max": 3}}
        (await origin.put(f"/v1/queues/{name}", json=spec)).raise_for_status()
        await _send(origin, name, range(2))

    await put_queue_mirror(stream_name, queues=[names[0], names[1], names[2]])

    await eventually(partial(_numbers, copy, names[1]), [0, 1])
    refused = f"Queue '{names[3]}' does not exist"
    await eventually(partial(_failures, copy_storage, stream_name), [refused])
    assert (await copy.get(f"/v1/queues/{names[0]}")).status_code == 404


async def test_promotion_without_the_origin_delivers_what_was_copied(
    origin, copy, pullers, link, put_queue_mirror, stream_name
):
    queue = stream_name
    await origin.put(f"/v1/queues/{queue}", json={})
    await origin.put(f"/v1/queues/{queue}/pause")
    await _send(origin, queue, range(3))
    await put_queue_mirror(queue)
    await eventually(partial(_numbers, copy, queue), [0, 1, 2])
    link.cut()

    promoted = await _promote(copy, queue)

    assert promoted["origin"] == "unreachable"
    assert (await copy.get(f"/v1/queues/{queue}")).json()["paused"]  # its owner paused it
    await copy.delete(f"/v1/queues/{queue}/pause")
    assert [one["body"] for one in await _receive(copy, queue, 10)] == ["0", "1", "2"]
    await _send(copy, queue, range(3, 4))


async def test_sqs_attributes_and_ids_survive(
    origin, copy, pullers, put_queue_mirror, service, copy_service, stream_name
):
    queue = stream_name
    sqs, target = (aws_client("sqs", url[0]) for url in (service, copy_service))
    url = (await asyncio.to_thread(sqs.create_queue, QueueName=queue))["QueueUrl"]
    sent = await asyncio.to_thread(
        sqs.send_message,
        QueueUrl=url,
        MessageBody="5",
        MessageAttributes={
            "n": {"DataType": "Number", "StringValue": "7"},
            "b": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
        },
    )
    await put_queue_mirror(queue)
    await eventually(partial(_numbers, copy, queue), [5])
    await _promote(copy, queue)

    copied = await asyncio.to_thread(target.get_queue_url, QueueName=queue)
    received = await asyncio.to_thread(
        target.receive_message, QueueUrl=copied["QueueUrl"], MessageAttributeNames=["All"]
    )
    [message] = received["Messages"]

    assert message["MessageId"] == sent["MessageId"]
    assert message["MessageAttributes"] == {
        "n": {"DataType": "Number", "StringValue": "7"},
        "b": {"DataType": "Binary", "BinaryValue": b"\x00\xff"},
    }


@pytest.mark.chaos
async def test_copy_is_complete_when_processes_are_killed(
    origin, service, copy, copy_service, mirrors, link, put_queue_mirror, stream_name
):
    """Background processes are killed while they copy, then a process of the origin, under traffic."""
    queue = stream_name
    await origin.put(f"/v1/queues/{queue}", json={})
    with running_service(environment_of(service[1])) as (url, api):
        port, link.port = link.port, httpx.URL(url).port
        await put_queue_mirror(queue)
        killed = asyncio.Event()
        traffic = asyncio.create_task(_traffic(origin, queue, killed))
        for _ in range(4):
            background = background_process(copy_service[1])
            before = len(await _numbers(copy, queue))
            await eventually(partial(_has_more, copy, queue, before), True)
            background.kill()
            background.wait()
            end_leases(copy_service[1].database_url)
        background = background_process(copy_service[1])
        killed.set()
        await traffic
        api.kill()
        api.wait()
    link.port = port
    try:
        await eventually(partial(_numbers, copy, queue), await _numbers(origin, queue), 60)
    finally:
        background.kill()
        background.wait()


async def _traffic(client: httpx.AsyncClient, queue: str, is_over: asyncio.Event) -> None:
    """Send messages, and acknowledge some of them."""
    number = 0
    while not is_over.is_set():
        await _send(client, queue, range(100 * number, 100 * number + 100))
        await _settle(client, queue, "ack", await _receive(client, queue, 40))
        number += 1
        await asyncio.sleep(0.2)


async def _has_more(client: httpx.AsyncClient, queue: str, count: int) -> bool:
    return len(await _numbers(client, queue)) > count
