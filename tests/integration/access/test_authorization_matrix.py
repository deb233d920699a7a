"""Authorization of every operation, by role, namespace and protocol.

The operations are those that the protocols declare and the models of the AWS SDKs name; the expected result follows
from the roles. A permitted call may fail for any other reason: it uses names that do not exist, or lacks a body.
"""

import asyncio
import base64
import json
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from typing import Any, NamedTuple

import httpx
import pytest
from botocore.exceptions import ClientError
from fastapi.routing import APIRoute
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from api.app import create_app
from api.aws.kinesis.service import KINESIS
from api.aws.sqs.service import SQS
from api.config.settings import Settings
from api.native.dependencies import right_of
from storage.domain.access.credentials import CredentialKind, Rights
from storage.domain.access.permissions import EVERYTHING, GRANTS_OF, Action, Policy, Principal, Role
from storage.domain.groups.group import GroupSpec
from storage.domain.names import GroupName, QueueName
from storage.domain.quotas import NO_QUOTAS
from tests.documentation import ROOT
from tests.secured_service import SecuredService, running_secured_service
from tests.websocket_client import Socket

pytestmark = pytest.mark.one_store

DOCUMENT = json.loads((ROOT / "openapi" / "openapi.json").read_text())
HOME, ABROAD = "default", "tenant-b"
ANY_CALLER = {
    "make_ticket",
    "whoami",
    "log_in",
    "log_out",
    "get_reply",
    "test_match",
    "translate_condition",
}
PUBLIC = {"check_live", "check_ready"}


class Operation(NamedTuple):
    """An operation of the native API.

    `action` is the permission that it needs; None: any credential, or none.
    """

    name: str
    method: str
    path: str
    action: Action | None


def operations() -> list[Operation]:
    """Collect every documented native operation."""
    app = create_app(Settings())
    needs: dict[str, Action | None] = {
        route.operation: route.action for route in app.dispatcher.routes
    }
    for route in app.control.state.cold_routes:
        if isinstance(route, APIRoute):
            rights = (right_of(depends) for depends in route.dependencies)
            needs[route.name] = next((right.action for right in rights if right), None)
    return [
        Operation(told["operationId"], method.upper(), path, needs[told["operationId"]])
        for path, methods in DOCUMENT["paths"].items()
        for method, told in methods.items()
    ]


OPERATIONS = operations()
POLICIES = {role: Policy((GRANTS_OF[role],)) for role in Role}


@pytest.fixture
async def secured_service(redis_url, database_url) -> AsyncGenerator[SecuredService]:
    async with running_secured_service(redis_url, database_url) as secured_service:
        await secured_service.storage.namespaces.put(ABROAD, NO_QUOTAS)
        yield secured_service


async def keys(
    secured_service: SecuredService, kind: CredentialKind = CredentialKind.KEY
) -> dict[Role, Any]:
    """A key of each role."""
    return {role: await secured_service.key(Rights(roles=(role,)), kind=kind) for role in Role}


async def abroad(secured_service: SecuredService, kind: CredentialKind = CredentialKind.KEY) -> Any:
    """An administrator's key of the other namespace."""
    return await secured_service.key(by=Principal("root", ABROAD, EVERYTHING), kind=kind)


# REST, server-sent events, and the calls of the command line and the SDKs


def test_every_operation_has_permission_or_is_exempt():
    assert {
        operation.name for operation in OPERATIONS if operation.action is None
    } <= ANY_CALLER | PUBLIC


def spelled(path: str) -> str:
    """Fill the placeholders of a path with names that do not exist."""
    return re.sub(r"\{(\w+)\}", lambda found: "0" if found[1] == "shard" else "nothing", path)


async def call(client: httpx.AsyncClient, one: Operation, headers: Mapping[str, str]) -> int:
    """Call an operation and return the status; a streaming response is abandoned."""
    body: dict[str, Any] = {} if one.method == "GET" else {"json": {}}
    stream = client.stream(one.method, spelled(one.path), headers=headers, **body)
    async with stream as answer:
        return answer.status_code


async def test_each_role_is_limited_to_its_operations_over_rest(secured_service: SecuredService):
    wrong = []
    async with httpx.AsyncClient(base_url=secured_service.url, timeout=30) as client:
        for role, key in (await keys(secured_service)).items():
            headers = {"authorization": f"Bearer {key.token}"}
            for one in (one for one in OPERATIONS if one.action is not None):
                status = await call(client, one, headers)
                assert one.action is not None
                allowed = POLICIES[role].allows(one.action, "nothing")
                if status == 401 or (status == 403) == allowed:
                    wrong.append((role, one.name, one.action, status))

    everywhere = {
        "namespace",
        "store",
    }  # deployment-wide administrators may call these, whatever the role
    assert [one for one in wrong if not any(word in one[1] for word in everywhere)] == []


async def test_operations_in_another_namespace_are_rejected(secured_service: SecuredService):
    key = await abroad(secured_service)
    headers = {"authorization": f"Bearer {key.token}", "millstream-namespace": HOME}
    async with httpx.AsyncClient(base_url=secured_service.url, timeout=30) as client:
        responses = {
            operation.name: await call(client, operation, headers)
            for operation in OPERATIONS
            if operation.action
        }

    assert set(responses.values()) == {403}


async def test_every_operation_returns_401_without_credential(secured_service: SecuredService):
    async with httpx.AsyncClient(base_url=secured_service.url, timeout=30) as client:
        responses = {operation.name: await call(client, operation, {}) for operation in OPERATIONS}

    assert {responses[operation.name] for operation in OPERATIONS if operation.action} == {401}


async def test_names_of_another_namespace_are_not_found(secured_service: SecuredService):
    key = await abroad(secured_service)
    headers = {"authorization": f"Bearer {key.token}"}
    paths = [
        (one, one.path.replace("{queue}", name).replace("{stream}", name))
        for one in OPERATIONS
        for name in ("orders", "nothing")
        if one.method == "GET" and re.search(r"\{(queue|stream)\}", one.path)
    ]
    async with httpx.AsyncClient(base_url=secured_service.url, timeout=30) as client:
        told: dict[str, list[tuple[int, Any]]] = {}
        for one, path in paths:
            shown = await client.get(spelled(path), headers=headers)
            code = shown.json().get("code") if shown.status_code >= 400 else None
            told.setdefault(one.name, []).append((shown.status_code, code))

    assert len(told) > 10
    assert [name for name, (theirs, missing) in told.items() if theirs != missing] == []
    assert all(status >= 400 for some in told.values() for status, _ in some)


# The AWS protocols


def samples(shape: Any, account: str) -> dict[str, Any]:
    """Build an input that the model allows, with names that do not exist."""
    wanted = {"StreamName", "QueueUrl", "QueueName", *shape.required_members}
    members = shape.members.items()
    return {name: _sample(name, one, account) for name, one in members if name in wanted}


_WORDS = {
    "QueueName": "nothing",
    "StreamName": "nothing",
    "ShardId": "shardId-000000000000",
    "ShardToSplit": "shardId-000000000000",
    "ShardToMerge": "shardId-000000000000",
    "AdjacentShardToMerge": "shardId-000000000001",
    "NewStartingHashKey": "1",
    "Policy": '{"Statement": []}',
    "KeyId": "alias/aws/kinesis",
    "Label": "label",
    "ReceiptHandle": "handle",
}


def _arn(name: str, account: str) -> str:
    if name in ("SourceArn", "DestinationArn"):
        return f"arn:aws:sqs:us-east-1:{account}:nothing"
    stream = f"arn:aws:kinesis:us-east-1:{account}:stream/nothing"
    return f"{stream}/consumer/c:1" if name.startswith("Consumer") else stream


def _sample(name: str, shape: Any, account: str) -> Any:
    kind = shape.type_name
    if name == "QueueUrl":
        return f"http://127.0.0.1/{account}/nothing"
    if name == "TaskHandle":
        fields = {"taskId": "t", "sourceArn": _arn("SourceArn", account)}
        return base64.b64encode(json.dumps(fields).encode()).decode()
    if name.endswith(("ARN", "Arn")):
        return _arn(name, account)
    if kind == "structure":
        return {one: _sample(one, shape.members[one], account) for one in shape.required_members}
    if kind == "list":
        return [_sample(shape.member.name, shape.member, account)]
    if kind == "map":
        return {"1": _sample("value", shape.value, account)}
    if kind in ("integer", "long"):
        return int(shape.metadata.get("min", 1))
    if kind == "blob":
        return b"x"
    if kind == "boolean":
        return True
    if shape.enum:
        return shape.enum[0]
    return _WORDS.get(name, "Type" if "Type" in name else "1")


def _is_refused(client: Any, method: str, asked: dict[str, Any]) -> bool | str:
    try:
        getattr(client, method)(**asked)
    except ClientError as error:
        code = str(error.response["Error"]["Code"])
        if code in ("AccessDenied", "AccessDeniedException"):
            return True
        return f"!{code}" if "Signature" in code or "Token" in code else False
    return False


def asked_of(
    client: Any, service: Any, account: str
) -> Iterator[tuple[str, str, Action, dict[str, Any]]]:
    model = client.meta.service_model
    methods = {name: method for method, name in client.meta.method_to_api_mapping.items()}
    for name in service.operations:
        if name not in model.operation_names:
            continue
        shape = model.operation_model(name).input_shape
        new_samples = samples(shape, account) if shape else {}
        yield name, methods[name], service.operations[name].action, new_samples


@pytest.mark.parametrize(("noun", "service"), [("sqs", SQS), ("kinesis", KINESIS)])
async def test_each_role_is_limited_to_its_operations_over_aws(
    secured_service: SecuredService, noun, service
):
    account = (await secured_service.storage.namespaces.get(HOME)).account_id
    pairs = await keys(secured_service, CredentialKind.PAIR)
    admin = pairs[Role.ADMIN]

    def request_all() -> list[Any]:
        iterator = secured_service.client("kinesis", admin.id, admin.token).get_shard_iterator(
            StreamName="clicks", ShardId="shardId-000000000000", ShardIteratorType="LATEST"
        )["ShardIterator"]
        wrong: list[Any] = []
        for role, pair in pairs.items():
            client = secured_service.client(noun, pair.id, pair.token)
            for name, method, action, asked in asked_of(client, service, account):
                if name == "GetRecords":
                    asked = {"ShardIterator": iterator}
                refused = _is_refused(client, method, asked)
                if refused is not (not POLICIES[role].allows(action, "nothing")):
                    wrong.append((role, name, action, refused))
        return wrong

    assert await asyncio.to_thread(request_all) == []


async def test_aws_identifiers_of_another_namespace_are_not_found(secured_service: SecuredService):
    account = (await secured_service.storage.namespaces.get(HOME)).account_id
    mine = await secured_service.key(kind=CredentialKind.PAIR)
    theirs = await abroad(secured_service, CredentialKind.PAIR)

    def request_all() -> list[str]:
        own_sqs = secured_service.client("sqs", mine.id, mine.token)
        url = own_sqs.get_queue_url(QueueName="orders")["QueueUrl"]
        own_sqs.send_message(QueueUrl=url, MessageBody="a")
        handle = own_sqs.receive_message(QueueUrl=url)["Messages"][0]["ReceiptHandle"]
        own_kinesis = secured_service.client("kinesis", mine.id, mine.token)
        iterator = own_kinesis.get_shard_iterator(
            StreamName="clicks", ShardId="shardId-000000000000", ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        arn = own_kinesis.describe_stream_summary(StreamName="clicks")["StreamDescriptionSummary"][
            "StreamARN"
        ]
        sqs = secured_service.client("sqs", theirs.id, theirs.token)
        kinesis = secured_service.client("kinesis", theirs.id, theirs.token)
        sqs.create_queue(QueueName="orders")
        own = sqs.get_queue_url(QueueName="orders")["QueueUrl"]
        assert own.split("/")[3] != account
        tries = [
            lambda: sqs.send_message(QueueUrl=url, MessageBody="b"),
            lambda: sqs.receive_message(QueueUrl=url),
            lambda: sqs.delete_message(QueueUrl=url, ReceiptHandle=handle),
            lambda: sqs.delete_message(QueueUrl=own, ReceiptHandle=handle),
            lambda: sqs.get_queue_url(QueueName="orders", QueueOwnerAWSAccountId=account),
            lambda: kinesis.get_records(ShardIterator=iterator),
            lambda: kinesis.describe_stream(StreamARN=arn),
            lambda: kinesis.put_record(StreamARN=arn, Data=b"x", PartitionKey="k"),
        ]
        codes = []
        for one in tries:
            try:
                one()
            except ClientError as error:
                codes.append(str(error.response["Error"]["Code"]))
            else:
                codes.append("done")
        return codes

    codes = await asyncio.to_thread(request_all)

    assert "done" not in codes, codes
    left = await secured_service.storage.queues.stats(QueueName("orders"))
    assert left.ready + left.in_flight == 1


# WebSocket

_MESSAGE = {"message": {"body": "a"}, "timeout_seconds": 0.01}
ASKED: list[tuple[Action, str, dict[str, Any]]] = [
    (Action.QUEUE_RECEIVE, "subscribe", {"sub": "q", "source": "queue:orders"}),
    (Action.STREAM_READ, "subscribe", {"sub": "s", "source": "stream:clicks"}),
    (Action.GROUP_COMMIT, "subscribe", {"sub": "g", "source": "stream:clicks", "group": "readers"}),
    (Action.QUEUE_SEND, "publish", {"to": "queue:orders", "items": [{"body": "a"}]}),
    (Action.STREAM_PUT, "publish", {"to": "stream:clicks", "items": [{"data": "a"}]}),
    (Action.TOPIC_PUBLISH, "publish", {"to": "topic:orders", "items": [{"body": "a"}]}),
    (Action.QUEUE_SEND, "request", {"to": "queue:orders", **_MESSAGE}),
    (Action.TOPIC_PUBLISH, "request", {"to": "topic:orders", **_MESSAGE}),
    (Action.QUEUE_RECEIVE, "reply", {"reply": {"request": "r", "body": "a"}}),
]


async def test_each_role_is_limited_to_its_operations_over_websocket(
    secured_service: SecuredService,
):
    await secured_service.storage.groups.put(GroupName("readers"), GroupSpec(stream="clicks"))
    protocols = [Subprotocol("millstream.v1.json")]
    wrong = []
    for role, key in (await keys(secured_service)).items():
        async with connect(secured_service.socket_address, subprotocols=protocols) as connection:
            socket = Socket(connection)
            await socket.hello(token=key.token)
            for action, frame, fields in ASKED:
                reply = await socket.request(frame, **fields)
                refused = reply["type"] == "error" and reply["problem"]["code"] == "forbidden"
                if refused is POLICIES[role].allows(action, "orders"):
                    wrong.append((role, action, reply))

    assert wrong == []


async def test_socket_of_another_namespace_finds_nothing(secured_service: SecuredService):
    key = await abroad(secured_service)
    protocols = [Subprotocol("millstream.v1.json")]
    async with connect(secured_service.socket_address, subprotocols=protocols) as connection:
        socket = Socket(connection)
        await socket.hello(token=key.token)
        replies = [await socket.request(frame, **fields) for _, frame, fields in ASKED]

    codes = {reply.get("problem", {}).get("code") for reply in replies if reply["type"] == "error"}
    assert all(reply["type"] == "error" or reply.get("results") for reply in replies), replies
    missing = {"queue_not_found", "stream_not_found", "topic_not_found", "group_not_found"}
    assert codes <= {*missing, "request_not_found"}
