"""GetCallerIdentity for callers with credentials."""

import asyncio
from typing import Any

import httpx
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from storage.domain.access.audit import ApiProtocol, AuditFilter
from storage.domain.access.credentials import CredentialKind, Rights
from storage.domain.access.permissions import EVERYTHING, Effect, Grant, Principal, Role
from storage.domain.quotas import NO_QUOTAS
from tests.conditions import eventually
from tests.secured_service import SecuredService, running_secured_service

pytestmark = pytest.mark.one_store

ELSEWHERE = "tenant-b"
NO_RIGHT = Rights(grants=(Grant(Effect.DENY, ("*",)),))


@pytest.fixture
async def secured_service(redis_url, database_url):
    async with running_secured_service(redis_url, database_url) as secured_service:
        yield secured_service


def identity(secured_service: SecuredService, key_id: str, secret: str) -> Any:
    caller_identity = secured_service.client("sts", key_id, secret).get_caller_identity()
    del caller_identity["ResponseMetadata"]
    return caller_identity


def refused(secured_service: SecuredService, key_id: str, secret: str) -> Any:
    with pytest.raises(ClientError) as error:
        identity(secured_service, key_id, secret)
    return error.value.response["Error"]["Code"]


@pytest.mark.parametrize("rights", [*(Rights(roles=(role,)) for role in Role), NO_RIGHT])
async def test_get_caller_identity_returns_caller(secured_service: SecuredService, rights):
    account = (await secured_service.storage.namespaces.get("default")).account_id
    pair = await secured_service.key(rights, kind=CredentialKind.PAIR)

    assert await asyncio.to_thread(identity, secured_service, pair.id, pair.token) == {
        "UserId": pair.id,
        "Account": account,
        "Arn": f"arn:aws:iam::{account}:user/ada",
    }


async def test_account_matches_queue_and_stream_arns(secured_service: SecuredService):
    pair = await secured_service.key(kind=CredentialKind.PAIR)

    def accounts() -> list[str]:
        sqs = secured_service.client("sqs", pair.id, pair.token)
        url = sqs.get_queue_url(QueueName="orders")["QueueUrl"]
        kinesis = secured_service.client("kinesis", pair.id, pair.token)
        summary = kinesis.describe_stream_summary(StreamName="clicks")["StreamDescriptionSummary"]
        own = identity(secured_service, pair.id, pair.token)["Account"]
        return [own, url.split("/")[3], summary["StreamARN"].split(":")[4]]

    assert len(set(await asyncio.to_thread(accounts))) == 1


async def test_accounts_are_separate_per_namespace(secured_service: SecuredService):
    await secured_service.storage.namespaces.put(ELSEWHERE, NO_QUOTAS)
    mine = await secured_service.key(kind=CredentialKind.PAIR)
    theirs = await secured_service.key(
        by=Principal("root", ELSEWHERE, EVERYTHING), kind=CredentialKind.PAIR
    )

    identities = [
        await asyncio.to_thread(identity, secured_service, pair.id, pair.token)
        for pair in (mine, theirs)
    ]

    assert identities[0]["Account"] != identities[1]["Account"]


async def test_invalid_credentials_are_rejected_and_audited(secured_service: SecuredService):
    pair, key = await secured_service.key(kind=CredentialKind.PAIR), await secured_service.key()

    def codes() -> list[str]:
        return [
            refused(secured_service, pair.id, "x" * 40),
            refused(secured_service, "MSAKNOBODYHASTHISONE", pair.token),
            refused(secured_service, key.id, key.secret),
        ]

    assert await asyncio.to_thread(codes) == [
        "SignatureDoesNotMatch",
        *("InvalidClientTokenId",) * 2,
    ]

    async def doors() -> set[ApiProtocol]:
        page = await secured_service.storage.audit_log.page(AuditFilter())
        return {entry.call.protocol for entry in page if entry.call.operation == "log_in"}

    await eventually(doors, {ApiProtocol.STS})


async def test_presigned_url_identifies_its_signer(secured_service: SecuredService):
    pair = await secured_service.key(kind=CredentialKind.PAIR)
    address = secured_service.client("sts", pair.id, pair.token).generate_presigned_url(
        "get_caller_identity", HttpMethod="GET"
    )

    async with httpx.AsyncClient() as client:
        answer = await client.get(address)
        changed = await client.get(address.replace(pair.id, "MSAKNOBODYHASTHISONE"))

    assert (answer.status_code, changed.status_code) == (200, 403)
    assert pair.id in answer.text


@pytest.mark.parametrize(
    ("service", "action"), [("sts", "ListQueues"), ("sqs", "GetCallerIdentity")]
)
async def test_signature_for_another_service_is_rejected(
    secured_service: SecuredService, service, action
):
    pair = await secured_service.key(kind=CredentialKind.PAIR)
    kind = {"content-type": "application/x-www-form-urlencoded"}
    aws_request = AWSRequest(
        "POST", f"{secured_service.url}/", headers=kind, data=f"Action={action}"
    )
    SigV4Auth(Credentials(pair.id, pair.token), service, "eu-west-1").add_auth(aws_request)

    async with httpx.AsyncClient() as client:
        answer = await client.post(
            f"{secured_service.url}/",
            headers=dict(aws_request.headers.items()),
            content=aws_request.data,
        )

    assert answer.status_code == 400
    assert "<Code>InvalidAction</Code>" in answer.text
