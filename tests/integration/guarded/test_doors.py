"""A service that wants credentials: who is let in at each door, and who has to leave."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as AwsCredentials
from botocore.exceptions import ClientError
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from storage.domain.access import (
    LOCAL_ADMINISTRATOR,
    Effect,
    Grant,
    Principal,
    Role,
)
from storage.domain.audit import Wanted
from storage.domain.credentials import (
    CredentialKind,
    NewSecret,
    Rights,
)
from storage.domain.names import QueueName
from storage.domain.queues import QueueSpec
from storage.domain.quotas import NO_QUOTAS, Quotas, Rates, ResourceRates
from tests.databases import nobody_connects
from tests.guarded import LET_IN, Guarded, guarding
from tests.sockets import Socket
from tests.waiting import eventually

pytestmark = pytest.mark.one_store

SOON_S = 10.0


@pytest.fixture
async def guarded(redis_url, database_url):
    async with guarding(redis_url, database_url) as guarded:
        yield guarded


# Nobody without a credential


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/queues"),
        ("POST", "/v1/queues/orders/messages"),
        ("GET", "/v1/streams/clicks/records"),
        ("GET", "/metrics"),
        ("PUT", "/v1/queues/more"),
    ],
)
async def test_without_a_credential_nothing_is_told(guarded: Guarded, method, path):
    answer = await guarded.ask(method, path, json={} if method != "GET" else None)

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["code"] == "unauthenticated"


async def test_a_load_balancer_needs_no_credential(guarded: Guarded):
    assert (await guarded.ask("GET", "/livez")).status_code == 200


@pytest.mark.parametrize(
    "word", ["-", "msk_", "nonsense", "msk_" + "0" * 50, "mst_" + "0" * 43, "a.b.c", "x" * 20_000]
)
async def test_what_is_no_credential_lets_nobody_in(guarded: Guarded, word):
    answer = await guarded.ask("GET", "/v1/queues", headers={"authorization": f"Bearer {word}"})

    assert answer.status_code == 401


async def test_the_right_id_with_another_secret_lets_nobody_in(guarded: Guarded):
    mine, other = await guarded.key(), await guarded.key()
    forged = mine.word[: len("msk_") + 13] + other.word[len("msk_") + 13 :]

    answer = await guarded.ask("GET", "/v1/queues", headers={"authorization": f"Bearer {forged}"})

    assert answer.status_code == 401


# Keys


@pytest.mark.parametrize("header", ["Bearer", "bearer", "X-API-Key"])
async def test_a_key_opens_the_native_doors(guarded: Guarded, header):
    key = await guarded.key()
    named = header == "X-API-Key"
    headers = {"x-api-key": key.word} if named else {"authorization": f"{header} {key.word}"}

    sent = await guarded.ask(
        "POST", "/v1/queues/orders/messages", headers=headers, json={"body": "a"}
    )
    listed = await guarded.ask("GET", "/v1/queues", headers=headers)

    assert (sent.status_code, listed.status_code) == (201, 200)


async def test_a_revoked_key_opens_nothing_from_then_on(guarded: Guarded):
    key = await guarded.key()
    assert (await guarded.ask("GET", "/v1/queues", key)).status_code == 200

    await guarded.storage.credentials.revoke(LOCAL_ADMINISTRATOR, key.id)

    assert (await guarded.ask("GET", "/v1/queues", key)).status_code == 401


async def test_a_key_is_good_through_a_short_absence_of_the_database(
    guarded: Guarded, database_url, monkeypatch
):
    """For as long as the grace lasts (ADR 0045); then nobody knows whether it was revoked."""
    monkeypatch.setattr("storage.postgres.listener._GRACE_SECONDS", 3.0)
    key = await guarded.key()

    async def send() -> int:
        answer = await guarded.ask("POST", "/v1/queues/orders/messages", key, json={"body": "a"})
        return int(answer.status_code)

    assert await send() == 201
    with nobody_connects(database_url):
        await asyncio.sleep(0.2)  # the connection's end is heard
        away = await send()
        await eventually(send, 503)
    await eventually(send, 201)

    assert away == 201


async def test_a_key_may_do_what_its_grants_say_and_sees_no_more(guarded: Guarded):
    await guarded.storage.catalog.put_queue(QueueName("secret"), QueueSpec())
    allow = Grant(Effect.ALLOW, ("queue:send", "queue:list"), ("orders*",))
    key = await guarded.key(Rights(grants=(allow,)))

    sent = await guarded.ask("POST", "/v1/queues/orders/messages", key, json={"body": "a"})
    taken = await guarded.ask("POST", "/v1/queues/orders/receive", key, json={})
    there = await guarded.ask("GET", "/v1/queues/secret", key)
    missing = await guarded.ask("GET", "/v1/queues/missing", key)
    listed = await guarded.ask("GET", "/v1/queues", key)

    assert (sent.status_code, taken.status_code) == (201, 403)
    assert (there.status_code, missing.status_code) == (403, 403)
    same = [
        one.json()["detail"].replace(name, "")
        for one, name in ((there, "secret"), (missing, "missing"))
    ]
    assert same[0] == same[1]
    assert [one["name"] for one in listed.json()["items"]] == ["orders"]


async def test_dead_letters_go_only_where_their_owner_may_send(guarded: Guarded):
    await guarded.storage.catalog.put_queue(QueueName("payroll"), QueueSpec())
    allow = Grant(Effect.ALLOW, ("queue:*",), ("orders*",))
    key = await guarded.key(Rights(grants=(allow,)))
    aimed = {"dead_letters": {"queue": "payroll", "receives_max": 1}}

    made = await guarded.ask("PUT", "/v1/queues/orders-eu", key, json=aimed)
    await guarded.ask("PUT", "/v1/queues/orders-eu", key, json={})
    changed = await guarded.ask("PATCH", "/v1/queues/orders-eu", key, json=aimed)

    assert (made.status_code, changed.status_code) == (403, 403)


# Tenants


async def test_tenants_have_names_of_their_own(guarded: Guarded):
    await guarded.storage.namespaces.put("tenant-a", NO_QUOTAS)
    everywhere = await guarded.key(everywhere=True)
    tenant = await guarded.key(by=Principal("root", "tenant-a", LOCAL_ADMINISTRATOR.policy))
    there = {"millstream-namespace": "tenant-a"}

    before = await guarded.ask("GET", "/v1/queues/orders", tenant)
    made = await guarded.ask("PUT", "/v1/queues/theirs", everywhere, json={}, headers=there)
    seen = await guarded.ask("GET", "/v1/queues", tenant)
    elsewhere = await guarded.ask(
        "GET", "/v1/queues", tenant, headers={"millstream-namespace": "default"}
    )

    assert before.status_code == 404
    assert made.status_code == 201
    assert [one["name"] for one in seen.json()["items"]] == ["theirs"]
    assert elsewhere.status_code == 403


# Pairs


async def pair(guarded: Guarded, rights: Rights = LET_IN) -> NewSecret:
    return await guarded.key(rights, kind=CredentialKind.PAIR)


def _refused(call: Callable[[], Any]) -> str:
    with pytest.raises(ClientError) as refused:
        call()
    return str(refused.value.response["Error"]["Code"])


async def test_a_pair_signs_for_an_unmodified_client(guarded: Guarded):
    one = await pair(guarded)

    def use() -> tuple[Any, Any]:
        sqs = guarded.client("sqs", one.id, one.word)
        kinesis = guarded.client("kinesis", one.id, one.word)
        url = sqs.get_queue_url(QueueName="orders")["QueueUrl"]
        sqs.send_message(QueueUrl=url, MessageBody="grüße & co")
        kinesis.put_record(StreamName="clicks", Data=b"\xff\x00", PartitionKey="k")
        messages = sqs.receive_message(QueueUrl=url)["Messages"]
        return messages[0]["Body"], kinesis.list_streams()["StreamNames"]

    body, streams = await asyncio.to_thread(use)

    assert (body, streams) == ("grüße & co", ["clicks"])


async def test_a_wrong_secret_and_an_unknown_key_are_told_in_amazons_words(guarded: Guarded):
    one = await pair(guarded)
    key = await guarded.key()

    def codes() -> list[str]:
        found = []
        for key_id, secret in (
            (one.id, "x" * 40),
            ("MSAKNOBODYHASTHISONE", one.word),
            (key.id, key.secret),
        ):
            sqs = guarded.client("sqs", key_id, secret)
            kinesis = guarded.client("kinesis", key_id, secret)
            found += [_refused(sqs.list_queues), _refused(kinesis.list_streams)]
        return found

    assert await asyncio.to_thread(codes) == [
        "SignatureDoesNotMatch",
        "InvalidSignatureException",
        *("InvalidClientTokenId", "UnrecognizedClientException") * 2,
    ]


async def test_who_signs_wrongly_is_told_of_in_the_audit_log(guarded: Guarded):
    one = await pair(guarded)

    await asyncio.to_thread(lambda: _refused(guarded.client("sqs", one.id, "x" * 40).list_queues))

    [entry] = await _refusals(guarded)
    assert (entry.asked.operation, entry.asked.credential) == ("log_in", one.id)
    assert entry.outcome == "refused:SignatureDoesNotMatch"


async def _refusals(guarded: Guarded) -> list[Any]:
    """What the audit log has of strangers, once it is there: it is written beside the answer."""
    async with asyncio.timeout(SOON_S):
        while True:
            page = await guarded.storage.audit.page(Wanted())
            found = [entry for entry in page if entry.asked.operation == "log_in"]
            if found:
                return found
            await asyncio.sleep(0.05)


async def test_a_presigned_address_is_used_without_any_key(guarded: Guarded):
    one = await pair(guarded)

    asked = AWSRequest("GET", f"{guarded.url}/?Action=ListQueues&Version=2012-11-05")
    SigV4QueryAuth(AwsCredentials(one.id, one.word), "sqs", "eu-west-1", expires=60).add_auth(asked)
    url = str(asked.url)
    async with httpx.AsyncClient() as client:
        told = await client.get(url)
        changed = await client.get(url.replace("ListQueues", "CreateQueue"))

    assert (told.status_code, changed.status_code) == (200, 403)
    assert b"orders" in told.content
    assert b"SignatureDoesNotMatch" in changed.content


async def test_a_policy_that_would_not_hold_is_refused(guarded: Guarded):
    one = await pair(guarded)

    def codes() -> list[str]:
        sqs = guarded.client("sqs", one.id, one.word)
        url = sqs.get_queue_url(QueueName="orders")["QueueUrl"]
        own = url.split("/")[3]
        sqs.add_permission(QueueUrl=url, Label="own", AWSAccountIds=[own], Actions=["SendMessage"])
        other = _refused(
            lambda: sqs.add_permission(
                QueueUrl=url, Label="other", AWSAccountIds=["111122223333"], Actions=["SendMessage"]
            )
        )
        denying = '{"Statement": [{"Effect": "Deny", "Principal": "*", "Action": "sqs:*"}]}'
        deny = _refused(
            lambda: sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": denying})
        )
        return [other, deny]

    assert await asyncio.to_thread(codes) == ["InvalidAttributeValue"] * 2


# Sockets and what goes on


async def test_a_socket_says_who_it_is_by_header_hello_or_ticket(guarded: Guarded):
    key = await guarded.key()
    principal = await _principal(guarded, key)
    made = await guarded.storage.credentials.make_ticket(principal)
    assert made is not None
    ticket = made[0]
    protocols = [Subprotocol("millstream.v1.json")]
    header = {"authorization": f"Bearer {key.word}"}

    async with connect(
        guarded.socket_address, subprotocols=protocols, additional_headers=header
    ) as one:
        assert (await Socket(one).hello())["type"] == "welcome"
    async with connect(guarded.socket_address, subprotocols=protocols) as one:
        assert (await Socket(one).hello(token=key.word))["type"] == "welcome"
    async with connect(f"{guarded.socket_address}?ticket={ticket}", subprotocols=protocols) as one:
        assert (await Socket(one).hello())["type"] == "welcome"
    with pytest.raises(InvalidStatus) as refused:
        async with connect(f"{guarded.socket_address}?ticket={ticket}", subprotocols=protocols):
            pass

    assert refused.value.response.status_code == 401


@pytest.mark.parametrize("hello", [{}, {"token": "nonsense"}])
async def test_a_socket_that_does_not_say_who_it_is_is_closed(guarded: Guarded, hello):
    async with connect(
        guarded.socket_address, subprotocols=[Subprotocol("millstream.v1.json")]
    ) as one:
        socket = Socket(one)
        await socket.say("hello", **hello)

        assert await socket.close_code() == 4501


async def _principal(guarded: Guarded, key: NewSecret) -> Principal:
    credential = await guarded.storage.credentials.find(key.id)
    assert credential is not None
    return credential.principal("default")


async def _revoke(guarded: Guarded, key: NewSecret) -> None:
    await guarded.storage.credentials.revoke(LOCAL_ADMINISTRATOR, key.id)


async def _take_rights(guarded: Guarded, key: NewSecret) -> None:
    fewer = Rights(roles=(Role.VIEWER,))
    await guarded.storage.credentials.change(LOCAL_ADMINISTRATOR, key.id, lambda _: fewer)


@pytest.mark.parametrize("ending", [_revoke, _take_rights])
async def test_a_socket_whose_credential_ends_is_closed_and_what_it_held_returns(
    guarded: Guarded, ending
):
    key = await guarded.key()
    await guarded.ask("POST", "/v1/queues/orders/messages", key, json={"body": "a"})
    async with connect(
        guarded.socket_address, subprotocols=[Subprotocol("millstream.v1.json")]
    ) as one:
        socket = Socket(one)
        await socket.hello(token=key.word)
        await socket.subscribe("a", "queue:orders")
        await socket.messages(1)

        await ending(guarded, key)

        async with asyncio.timeout(SOON_S):
            assert await socket.close_code() == 4011
    again = await guarded.key()
    received = await guarded.ask(
        "POST", "/v1/queues/orders/receive", again, json={"wait_seconds": 2}
    )
    assert [one["body"] for one in received.json()["messages"]] == ["a"]


@pytest.mark.parametrize("accept", ["text/event-stream", "application/x-ndjson"])
async def test_a_followed_stream_ends_with_its_readers_credential(guarded: Guarded, accept):
    key = await guarded.key()
    headers = {"authorization": f"Bearer {key.word}", "accept": accept}
    async with (
        httpx.AsyncClient(base_url=guarded.url, timeout=SOON_S) as client,
        client.stream(
            "GET", "/v1/streams/clicks/events", headers=headers, params={"from": "latest"}
        ) as answer,
    ):
        assert answer.status_code == 200

        await _revoke(guarded, key)

        async with asyncio.timeout(SOON_S):
            async for _ in answer.aiter_bytes():
                pass


async def test_a_subscription_to_a_shard_ends_with_its_readers_credential(guarded: Guarded):
    one = await pair(guarded)
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def read() -> None:
        kinesis = guarded.client("kinesis", one.id, one.word)
        arn = kinesis.describe_stream_summary(StreamName="clicks")["StreamDescriptionSummary"][
            "StreamARN"
        ]
        consumer = kinesis.register_stream_consumer(StreamARN=arn, ConsumerName="reader")
        told = kinesis.subscribe_to_shard(
            ConsumerARN=consumer["Consumer"]["ConsumerARN"],
            ShardId="shardId-000000000000",
            StartingPosition={"Type": "TRIM_HORIZON"},
        )
        for _ in told["EventStream"]:
            loop.call_soon_threadsafe(begun.set)

    reading = asyncio.create_task(asyncio.to_thread(read))
    async with asyncio.timeout(SOON_S):
        await begun.wait()

    await _revoke(guarded, one)

    async with asyncio.timeout(SOON_S):
        await reading


async def test_who_has_no_business_with_a_queue_takes_nothing_of_its_rates(guarded: Guarded):
    few = Rates(calls_per_second=5.0)
    await guarded.storage.namespaces.put(
        "default", Quotas(resources=(ResourceRates("queue/orders", few),))
    )
    stranger = await pair(guarded, Rights(grants=(Grant(Effect.ALLOW, ("queue:*",), ("mine",)),)))
    stranger_key = await guarded.key(Rights(grants=(Grant(Effect.ALLOW, ("*",), ("mine",)),)))
    owner = await guarded.key()

    def knock() -> set[str]:
        sqs = guarded.client("sqs", stranger.id, stranger.word)
        return {_refused(lambda: sqs.get_queue_url(QueueName="orders")) for _ in range(20)}

    knocked = await asyncio.to_thread(knock)
    over_rest = [await guarded.ask("GET", "/v1/queues/orders", stranger_key) for _ in range(20)]
    owned = [await guarded.ask("GET", "/v1/queues/orders/stats", owner) for _ in range(3)]
    asked = (guarded.ask("GET", "/v1/queues/orders/stats", owner) for _ in range(40))
    many = await asyncio.gather(*asked)  # at once: one after another they might be slow enough

    assert knocked == {"AccessDenied"}
    assert {one.status_code for one in over_rest} == {403}
    assert [one.status_code for one in owned] == [200] * 3
    assert 429 in {one.status_code for one in many}


# Sessions


async def test_a_browser_logs_in_by_a_key_in_the_body_alone(guarded: Guarded):
    key = await guarded.key()

    right = await guarded.ask("POST", "/v1/sessions", json={"api_key": key.word})
    wrong = await guarded.ask("POST", "/v1/sessions", json={"api_key": "msk_nonsense"})
    nothing = await guarded.ask("POST", "/v1/sessions", json={})
    cookie = {"cookie": right.headers["set-cookie"].partition(";")[0]}
    listed = await guarded.ask("GET", "/v1/queues", headers=cookie)
    out = await guarded.ask("DELETE", "/v1/sessions", headers=cookie)
    after = await guarded.ask("GET", "/v1/queues", headers=cookie)

    assert [one.status_code for one in (right, wrong, nothing)] == [201, 401, 401]
    assert [one.status_code for one in (listed, out, after)] == [200, 204, 401]


async def test_a_session_is_for_the_services_own_pages(guarded: Guarded):
    key = await guarded.key()
    logged_in = await guarded.storage.credentials.log_in(key.word)
    assert logged_in is not None
    cookie = {"cookie": f"ms_session={logged_in.word}"}
    host = guarded.url.removeprefix("http://")

    own = await guarded.ask("GET", "/v1/queues", headers=cookie | {"sec-fetch-site": "same-origin"})
    same = await guarded.ask("GET", "/v1/queues", headers=cookie | {"origin": f"http://{host}"})
    cross = await guarded.ask(
        "GET", "/v1/queues", headers=cookie | {"sec-fetch-site": "cross-site"}
    )
    other = await guarded.ask(
        "GET", "/v1/queues", headers=cookie | {"origin": "https://evil.example"}
    )
    link = await guarded.ask(
        "GET",
        "/v1/queues",
        headers=cookie | {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
    )
    await guarded.storage.credentials.log_out(logged_in.word)
    after = await guarded.ask("GET", "/v1/queues", headers=cookie)

    assert [one.status_code for one in (own, same, link)] == [200] * 3
    assert [one.status_code for one in (cross, other)] == [403] * 2
    assert after.status_code == 401
