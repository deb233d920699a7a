"""AWS clients that sign with a key pair."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as AwsCredentials
from botocore.exceptions import ClientError
from msgspec.structs import replace

from api.auth.credentials import KeyAuthenticator
from api.auth.jwt import JwtIssuers
from storage.domain.access.audit import AuditFilter
from storage.domain.access.credentials import CredentialKind, NewSecret, Rights
from storage.domain.access.permissions import LOCAL_ADMINISTRATOR, Effect, Grant
from storage.domain.clock import ManualClock, SystemClock
from storage.domain.errors import Unauthenticated
from storage.domain.quotas import Quotas, Rates, ResourceRates
from tests.conditions import PATIENCE_S
from tests.secured_service import ADMIN_RIGHTS, SecuredService

pytestmark = pytest.mark.one_store


async def pair(secured_service: SecuredService, rights: Rights = ADMIN_RIGHTS) -> NewSecret:
    return await secured_service.key(rights, kind=CredentialKind.PAIR)


def _refused(call: Callable[[], Any]) -> str:
    with pytest.raises(ClientError) as refused:
        call()
    return str(refused.value.response["Error"]["Code"])


async def test_key_pair_signs_for_unmodified_client(secured_service: SecuredService):
    key_pair = await pair(secured_service)

    def use() -> tuple[Any, Any]:
        sqs = secured_service.client("sqs", key_pair.id, key_pair.token)
        kinesis = secured_service.client("kinesis", key_pair.id, key_pair.token)
        url = sqs.get_queue_url(QueueName="orders")["QueueUrl"]
        sqs.send_message(QueueUrl=url, MessageBody="grüße & co")
        kinesis.put_record(StreamName="clicks", Data=b"\xff\x00", PartitionKey="k")
        messages = sqs.receive_message(QueueUrl="orders")["Messages"]
        return messages[0]["Body"], kinesis.list_streams()["StreamNames"]

    body, streams = await asyncio.to_thread(use)

    assert (body, streams) == ("grüße & co", ["clicks"])


@pytest.mark.parametrize("slash", ["", "/"])
async def test_key_pair_signs_for_address_with_slash(secured_service: SecuredService, slash: str):
    key_pair = await pair(secured_service)

    def use() -> tuple[Any, int]:
        sqs = secured_service.client("sqs", key_pair.id, key_pair.token)
        url = sqs.get_queue_url(QueueName="orders")["QueueUrl"] + slash
        sqs.send_message(QueueUrl=url, MessageBody="x")
        request = AWSRequest("GET", url, params={"Action": "ReceiveMessage"})
        signer = SigV4QueryAuth(AwsCredentials(key_pair.id, key_pair.token), "sqs", "us-east-1")
        signer.add_auth(request)
        return sqs.get_queue_attributes(QueueUrl=url), httpx.get(str(request.url)).status_code

    attributes, status = await asyncio.to_thread(use)

    assert "Attributes" not in attributes
    assert status == 200


async def test_wrong_secret_and_unknown_key_return_aws_errors(secured_service: SecuredService):
    key_pair = await pair(secured_service)
    key = await secured_service.key()

    def codes() -> list[str]:
        found = []
        for key_id, secret in (
            (key_pair.id, "x" * 40),
            ("MSAKNOBODYHASTHISONE", key_pair.token),
            (key.id, key.secret),
        ):
            sqs = secured_service.client("sqs", key_id, secret)
            kinesis = secured_service.client("kinesis", key_id, secret)
            found += [_refused(sqs.list_queues), _refused(kinesis.list_streams)]
        return found

    assert await asyncio.to_thread(codes) == [
        "SignatureDoesNotMatch",
        "InvalidSignatureException",
        *("InvalidClientTokenId", "UnrecognizedClientException") * 2,
    ]


async def test_key_pair_is_checked_on_every_call(secured_service: SecuredService):
    key_pair = await pair(secured_service)

    def use(secret: str) -> Any:
        return secured_service.client("sqs", key_pair.id, secret).list_queues()

    for _ in range(2):
        await asyncio.to_thread(use, key_pair.token)
    wrong = await asyncio.to_thread(_refused, lambda: use("x" * 40))
    await secured_service.storage.credentials.revoke(LOCAL_ADMINISTRATOR, key_pair.id)
    revoked = await asyncio.to_thread(_refused, lambda: use(key_pair.token))

    assert (wrong, revoked) == ("SignatureDoesNotMatch", "InvalidClientTokenId")


class _SignedRequest:
    """A correctly signed request of a key id."""

    headers: dict[bytes, bytes] = {}

    def __init__(self, key_id: str) -> None:
        self._key_id = key_id

    def key_id(self) -> str:
        return self._key_id

    def check(self, secret: bytes, now_ms: int) -> None:
        assert secret

    def unknown(self) -> Exception:
        return Unauthenticated()


async def test_cached_key_pair_expires(secured_service: SecuredService, monkeypatch):
    clock = ManualClock(SystemClock().now_ms())
    authenticator = KeyAuthenticator(lambda: secured_service.storage, JwtIssuers(()), clock)
    key_pair = await pair(
        secured_service, replace(ADMIN_RIGHTS, expires_at_ms=clock.now_ms() + 10_000)
    )
    for _ in range(2):
        await authenticator.authenticate_signed(_SignedRequest(key_pair.id))

    async def nobody(_: str) -> None:
        """Find no key: it has been deleted by now."""

    monkeypatch.setattr(secured_service.storage.credentials, "find", nobody)
    clock.advance(ms=9_999)
    assert (
        await authenticator.authenticate_signed(_SignedRequest(key_pair.id))
    ).credential == key_pair.id

    clock.advance(ms=1)
    with pytest.raises(Unauthenticated):
        await authenticator.authenticate_signed(_SignedRequest(key_pair.id))


async def test_wrong_signature_is_recorded_in_audit_log(secured_service: SecuredService):
    key_pair = await pair(secured_service)

    await asyncio.to_thread(
        lambda: _refused(secured_service.client("sqs", key_pair.id, "x" * 40).list_queues)
    )

    [entry] = await _refusals(secured_service)
    assert (entry.call.operation, entry.call.credential) == ("log_in", key_pair.id)
    assert entry.outcome == "refused:SignatureDoesNotMatch"


async def _refusals(secured_service: SecuredService) -> list[Any]:
    """Wait for the log entries of rejected logins, which are written in the background."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            page = await secured_service.storage.audit_log.page(AuditFilter())
            pages = [entry for entry in page if entry.call.operation == "log_in"]
            if pages:
                return pages
            await asyncio.sleep(0.05)


async def test_presigned_url_needs_no_key(secured_service: SecuredService):
    key_pair = await pair(secured_service)

    aws_request = AWSRequest("GET", f"{secured_service.url}/?Action=ListQueues&Version=2012-11-05")
    SigV4QueryAuth(
        AwsCredentials(key_pair.id, key_pair.token), "sqs", "eu-west-1", expires=60
    ).add_auth(aws_request)
    url = str(aws_request.url)
    async with httpx.AsyncClient() as client:
        response = await client.get(url)
        changed = await client.get(url.replace("ListQueues", "CreateQueue"))

    assert (response.status_code, changed.status_code) == (200, 403)
    assert b"orders" in response.content
    assert b"SignatureDoesNotMatch" in changed.content


async def test_unenforceable_sqs_policy_is_rejected(secured_service: SecuredService):
    key_pair = await pair(secured_service)

    def codes() -> list[str]:
        sqs = secured_service.client("sqs", key_pair.id, key_pair.token)
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


async def test_unauthorized_calls_do_not_use_rates_of_queue(secured_service: SecuredService):
    few = Rates(calls_per_second=5.0)
    await secured_service.storage.namespaces.put(
        "default", Quotas(resources=(ResourceRates("queue/orders", few),))
    )
    stranger = await pair(
        secured_service, Rights(grants=(Grant(Effect.ALLOW, ("queue:*",), ("mine",)),))
    )
    stranger_key = await secured_service.key(
        Rights(grants=(Grant(Effect.ALLOW, ("*",), ("mine",)),))
    )
    owner = await secured_service.key()

    def knock() -> set[str]:
        sqs = secured_service.client("sqs", stranger.id, stranger.token)
        return {_refused(lambda: sqs.get_queue_url(QueueName="orders")) for _ in range(20)}

    knocked = await asyncio.to_thread(knock)
    over_rest = [
        await secured_service.request("GET", "/v1/queues/orders", stranger_key) for _ in range(20)
    ]
    owned = [
        await secured_service.request("GET", "/v1/queues/orders/stats", owner) for _ in range(3)
    ]
    responses = (
        secured_service.request("GET", "/v1/queues/orders/stats", owner) for _ in range(40)
    )
    many = await asyncio.gather(
        *responses
    )  # concurrently: sequential calls might be slow enough to pass

    assert knocked == {"AccessDenied"}
    assert {one.status_code for one in over_rest} == {403}
    assert [one.status_code for one in owned] == [200] * 3
    assert 429 in {one.status_code for one in many}
