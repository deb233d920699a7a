"""Sockets and streaming responses end with the credential that opened them."""

import asyncio

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from storage.domain.access.credentials import CredentialKind, NewSecret, Rights
from storage.domain.access.permissions import LOCAL_ADMINISTRATOR, Principal, Role
from tests.conditions import PATIENCE_S
from tests.secured_service import ADMIN_RIGHTS, SecuredService
from tests.websocket_client import Socket

pytestmark = pytest.mark.one_store


async def test_socket_authenticates_by_header_hello_or_ticket(secured_service: SecuredService):
    key = await secured_service.key()
    principal = await _principal(secured_service, key)
    made = await secured_service.storage.credentials.make_ticket(principal)
    assert made is not None
    ticket = made[0]
    protocols = [Subprotocol("millstream.v1.json")]
    header = {"authorization": f"Bearer {key.token}"}

    async with connect(
        secured_service.socket_address, subprotocols=protocols, additional_headers=header
    ) as connection:
        assert (await Socket(connection).hello())["type"] == "welcome"
    async with connect(secured_service.socket_address, subprotocols=protocols) as connection:
        assert (await Socket(connection).hello(token=key.token))["type"] == "welcome"
    async with connect(
        f"{secured_service.socket_address}?ticket={ticket}", subprotocols=protocols
    ) as connection:
        assert (await Socket(connection).hello())["type"] == "welcome"
    with pytest.raises(InvalidStatus) as refused:
        async with connect(
            f"{secured_service.socket_address}?ticket={ticket}", subprotocols=protocols
        ):
            pass

    assert refused.value.response.status_code == 401


@pytest.mark.parametrize("hello", [{}, {"token": "nonsense"}])
async def test_unauthenticated_socket_is_closed(secured_service: SecuredService, hello):
    async with connect(
        secured_service.socket_address, subprotocols=[Subprotocol("millstream.v1.json")]
    ) as connection:
        socket = Socket(connection)
        await socket.send_frame("hello", **hello)

        assert await socket.close_code() == 4501


async def _principal(secured_service: SecuredService, key: NewSecret) -> Principal:
    credential = await secured_service.storage.credentials.find(key.id)
    assert credential is not None
    return credential.principal("default")


async def _revoke(secured_service: SecuredService, key: NewSecret) -> None:
    await secured_service.storage.credentials.revoke(LOCAL_ADMINISTRATOR, key.id)


async def _take_rights(secured_service: SecuredService, key: NewSecret) -> None:
    fewer = Rights(roles=(Role.VIEWER,))
    await secured_service.storage.credentials.change(LOCAL_ADMINISTRATOR, key.id, lambda _: fewer)


@pytest.mark.parametrize("ending", [_revoke, _take_rights])
async def test_socket_closes_and_releases_when_credential_ends(
    secured_service: SecuredService, ending
):
    key = await secured_service.key()
    await secured_service.request("POST", "/v1/queues/orders/messages", key, json={"body": "a"})
    async with connect(
        secured_service.socket_address, subprotocols=[Subprotocol("millstream.v1.json")]
    ) as one:
        socket = Socket(one)
        await socket.hello(token=key.token)
        await socket.subscribe("a", "queue:orders")
        await socket.messages(1)

        await ending(secured_service, key)

        async with asyncio.timeout(PATIENCE_S):
            assert await socket.close_code() == 4011
    again = await secured_service.key()
    received = await secured_service.request(
        "POST", "/v1/queues/orders/receive", again, json={"wait_seconds": 2}
    )
    assert [one["body"] for one in received.json()["messages"]] == ["a"]


@pytest.mark.parametrize("accept", ["text/event-stream", "application/x-ndjson"])
async def test_followed_stream_ends_with_its_credential(secured_service: SecuredService, accept):
    key = await secured_service.key()
    headers = {"authorization": f"Bearer {key.token}", "accept": accept}
    async with (
        httpx.AsyncClient(base_url=secured_service.url, timeout=PATIENCE_S) as client,
        client.stream(
            "GET", "/v1/streams/clicks/events", headers=headers, params={"from": "latest"}
        ) as answer,
    ):
        assert answer.status_code == 200

        await _revoke(secured_service, key)

        async with asyncio.timeout(PATIENCE_S):
            async for _ in answer.aiter_bytes():
                pass


async def test_shard_subscription_ends_with_its_credential(secured_service: SecuredService):
    key = await secured_service.key(ADMIN_RIGHTS, kind=CredentialKind.PAIR)
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def read() -> None:
        kinesis = secured_service.client("kinesis", key.id, key.token)
        arn = kinesis.describe_stream_summary(StreamName="clicks")["StreamDescriptionSummary"][
            "StreamARN"
        ]
        consumer = kinesis.register_stream_consumer(StreamARN=arn, ConsumerName="reader")
        response = kinesis.subscribe_to_shard(
            ConsumerARN=consumer["Consumer"]["ConsumerARN"],
            ShardId="shardId-000000000000",
            StartingPosition={"Type": "TRIM_HORIZON"},
        )
        for _ in response["EventStream"]:
            loop.call_soon_threadsafe(begun.set)

    reading = asyncio.create_task(asyncio.to_thread(read))
    async with asyncio.timeout(PATIENCE_S):
        await begun.wait()

    await _revoke(secured_service, key)

    async with asyncio.timeout(PATIENCE_S):
        await reading
