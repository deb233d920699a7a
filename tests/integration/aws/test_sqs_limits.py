"""Rules of the SQS API that apply only with the limits of AWS."""

from typing import Any, Literal

import httpx

from api.app import create_app
from api.config.settings import Settings


def client_of(storage: Any, profile: Literal["native", "aws"]) -> httpx.AsyncClient:
    app = create_app(Settings(limits=profile), storage)
    transport = httpx.ASGITransport(app=app)
    return httpx.AsyncClient(transport=transport, base_url="http://localhost")


async def call(client: httpx.AsyncClient, operation: str, **asked: Any) -> httpx.Response:
    headers = {
        "x-amz-target": f"AmazonSQS.{operation}",
        "content-type": "application/x-amz-json-1.0",
        "x-amzn-query-mode": "true",
    }
    return await client.post("/", json=asked, headers=headers)


async def delete_a_queue(client: httpx.AsyncClient) -> None:
    made = await call(client, "CreateQueue", QueueName="jobs")
    await call(client, "DeleteQueue", QueueUrl=made.json()["QueueUrl"])


async def test_queue_name_reuse_is_delayed_after_delete(engines, clock):
    client = client_of(engines, "aws")
    await delete_a_queue(client)

    clock.advance(ms=59_999)
    too_soon = await call(client, "CreateQueue", QueueName="jobs")
    other = await call(client, "CreateQueue", QueueName="other")
    clock.advance(ms=1)
    again = await call(client, "CreateQueue", QueueName="jobs")

    assert too_soon.status_code == 400
    assert too_soon.json()["__type"] == "com.amazonaws.sqs#QueueDeletedRecently"
    code = "AWS.SimpleQueueService.QueueDeletedRecently;Sender"
    assert too_soon.headers["x-amzn-query-error"] == code
    assert (other.status_code, again.status_code) == (200, 200)


async def test_create_of_existing_queue_ignores_earlier_delete(engines, clock):
    strict = client_of(engines, "aws")
    await delete_a_queue(strict)
    clock.advance(ms=60_000)
    await call(strict, "CreateQueue", QueueName="jobs")

    assert (await call(strict, "CreateQueue", QueueName="jobs")).status_code == 200


async def test_queue_name_is_reusable_immediately_by_default(engines):
    client = client_of(engines, "native")
    await delete_a_queue(client)

    assert (await call(client, "CreateQueue", QueueName="jobs")).status_code == 200
