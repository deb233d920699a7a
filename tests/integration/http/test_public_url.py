"""URLs in responses when the request does not determine the address."""

import httpx
import pytest
from pydantic import ValidationError

from api.config.settings import Settings
from storage.domain.limits import Limits
from tests.websocket_client import running_server

pytestmark = pytest.mark.one_store


@pytest.mark.parametrize("said", ["https://queues.example.com", "https://queues.example.com/"])
async def test_queue_urls_and_examples_use_public_url(storage, said):
    """Perl's Amazon::SQS::Simple omits the port from Host, and some proxies replace Host."""
    async with (
        running_server(storage, Limits(), Settings(public_url=said)) as server,
        httpx.AsyncClient(base_url=server.url) as client,
    ):
        queue = {"Action": "CreateQueue", "QueueName": "orders"}
        made = await client.post("/", data=queue)
        listed = await client.post("/", data={"Action": "ListQueues"})
        page = await client.get("/ui/queues/orders/code")

    for answer in (made, listed):
        assert "<QueueUrl>https://queues.example.com/" in answer.text
    assert "https://queues.example.com" in page.text


@pytest.mark.parametrize(
    "said", ["queues.example.com", "https://example.com/queues", "ftp://a", "*"]
)
def test_public_url_must_be_origin(said):
    with pytest.raises(ValidationError, match="is not an origin"):
        Settings(public_url=said)
