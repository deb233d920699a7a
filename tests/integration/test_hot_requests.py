"""Hot requests to a service in this process: what is left of one that was answered."""

import gc

import httpx
import pytest

from api.dataplane import HotRequest
from storage.domain.limits import Limits
from storage.domain.names import QueueName
from storage.domain.queues import QueueSpec
from tests.sockets import serving

pytestmark = pytest.mark.one_store

BODY = b"a" * 10_000


async def test_a_request_that_was_answered_is_gone_at_once(storage):
    """Its body would stay as long as nobody looks for garbage, and on a connection that idles."""
    await storage.catalog.put_queue(QueueName("orders"), QueueSpec())
    async with (
        serving(storage, Limits()) as server,
        httpx.AsyncClient(base_url=server.url) as client,
    ):
        gc.disable()
        try:
            answers = [
                await client.post("/v1/queues/orders/messages", content=BODY) for _ in range(3)
            ]
            requests = [one for one in gc.get_objects() if isinstance(one, HotRequest)]
            left = [one for one in requests if one.body == BODY]
        finally:
            gc.enable()

    assert {answer.status_code for answer in answers} == {201}
    assert left == []
