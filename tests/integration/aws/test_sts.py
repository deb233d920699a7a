"""GetCallerIdentity for callers with credentials."""

import asyncio
from typing import Any

import httpx
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import ClientError

from storage.domain.access.audit import AuditFilter, Door
from storage.domain.access.credentials import CredentialKind, Rights
from storage.domain.access.permissions import EVERYTHING, Effect, Grant, Principal, Role
from storage.domain.quotas import NO_QUOTAS
from tests.guarded import Guarded, guarding
from tests.waiting import eventually

pytestmark = pytest.mark.one_store

ELSEWHERE = "tenant-b"
NO_RIGHT = Rights(grants=(Grant(Effect.DENY, ("*",)),))


@pytest.fixture
async def guarded(redis_url, database_url):
    async with guarding(redis_url, database_url) as guarded:
        yield guarded


def identity(guarded: Guarded, key_id: str, secret: str) -> Any:
    told = guarded.client("sts", key_id, secret).get_caller_identity()
    del told["ResponseMetadata"]
    return told


def refused(guarded: Guarded, key_id: str, secret: str) -> Any:
    with pytest.raises(ClientError) as error:
        identity(guarded, key_id, secret)
    return error.value.response["Error"]["Code"]


@pytest.mark.parametrize("rights", [*(Rights(roles=(role,)) for role in Role), NO_RIGHT])
async def test_get_caller_identity_returns_caller(guarded: Guarded, rights):
    account = (await guarded.storage.namespaces.get("default")).account_id
    pair = await guarded.key(rights, kind=CredentialKind.PAIR)

    assert await asyncio.to_thread(identity, guarded, pair.id, pair.word) == {
        "UserId": pair.id,
        "Account": account,
        "Arn": f"arn:aws:iam::{account}:user/ada",
    }


async def test_account_matches_queue_and_stream_arns(guarded: Guarded):
    pair = await guarded.key(kind=CredentialKind.PAIR)

    def accounts() -> list[str]:
        sqs = guarded.client("sqs", pair.id, pair.word)
        url = sqs.get_queue_url(QueueName="orders")["QueueUrl"]
        kinesis = guarded.client("kinesis", pair.id, pair.word)
        summary = kinesis.describe_stream_summary(StreamName="clicks")["StreamDescriptionSummary"]
        own = identity(guarded, pair.id, pair.word)["Account"]
        return [own, url.split("/")[3], summary["StreamARN"].split(":")[4]]

    assert len(set(await asyncio.to_thread(accounts))) == 1


async def test_accounts_are_separate_per_namespace(guarded: Guarded):
    await guarded.storage.namespaces.put(ELSEWHERE, NO_QUOTAS)
    mine = await guarded.key(kind=CredentialKind.PAIR)
    theirs = await guarded.key(
        by=Principal("root", ELSEWHERE, EVERYTHING), kind=CredentialKind.PAIR
    )

    told = [
        await asyncio.to_thread(identity, guarded, pair.id, pair.word) for pair in (mine, theirs)
    ]

    assert told[0]["Account"] != told[1]["Account"]


async def test_invalid_credentials_are_rejected_and_audited(guarded: Guarded):
    pair, key = await guarded.key(kind=CredentialKind.PAIR), await guarded.key()

    def codes() -> list[str]:
        return [
            refused(guarded, pair.id, "x" * 40),
            refused(guarded, "MSAKNOBODYHASTHISONE", pair.word),
            refused(guarded, key.id, key.secret),
        ]

    assert await asyncio.to_thread(codes) == [
        "SignatureDoesNotMatch",
        *("InvalidClientTokenId",) * 2,
    ]

    async def doors() -> set[Door]:
        page = await guarded.storage.audit_log.page(AuditFilter())
        return {entry.call.door for entry in page if entry.call.operation == "log_in"}

    await eventually(doors, {Door.STS})


async def test_presigned_url_identifies_its_signer(guarded: Guarded):
    pair = await guarded.key(kind=CredentialKind.PAIR)
    address = guarded.client("sts", pair.id, pair.word).generate_presigned_url(
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
async def test_signature_for_another_service_is_rejected(guarded: Guarded, service, action):
    pair = await guarded.key(kind=CredentialKind.PAIR)
    kind = {"content-type": "application/x-www-form-urlencoded"}
    asked = AWSRequest("POST", f"{guarded.url}/", headers=kind, data=f"Action={action}")
    SigV4Auth(Credentials(pair.id, pair.word), service, "eu-west-1").add_auth(asked)

    async with httpx.AsyncClient() as client:
        answer = await client.post(
            f"{guarded.url}/", headers=dict(asked.headers.items()), content=asked.data
        )

    assert answer.status_code == 400
    assert "<Code>InvalidAction</Code>" in answer.text
