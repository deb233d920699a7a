"""Namespaces and quotas on every protocol.

A rate of one in a thousand seconds allows its burst, and then nothing for as long as a test lasts.
"""

import itertools
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.aws_clients import aws_client
from tests.contract.http.test_problems import refused

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "quotas.md"
ONE_IN_A_WHILE = {"calls_per_second": 0.001, "burst_seconds": 3600}  # a burst of three
Tenant = Callable[..., str]

_numbers = itertools.count(1)


@pytest.fixture
def tenant(client: httpx.Client) -> Tenant:
    """Create a namespace with quotas and the given contents; returns its name."""

    def make(queue: str | None = None, stream: str | None = None, **quotas: Any) -> str:
        name = f"tenant-{next(_numbers)}"
        client.put(f"/v1/namespaces/{name}").raise_for_status()
        if queue:
            client.put(f"/v1/queues/{queue}", headers=in_(name)).raise_for_status()
        if stream:
            client.put(f"/v1/streams/{stream}", headers=in_(name)).raise_for_status()
        client.put(f"/v1/namespaces/{name}", json=quotas).raise_for_status()
        return name

    return make


def in_(name: str) -> dict[str, str]:
    return {"millstream-namespace": name}


@pytest.fixture
def amazon(service_url: str) -> Iterator[Callable[..., Any]]:
    """Create clients of the AWS SDK in a namespace, by default without retries."""
    made = []

    def make(service: str, name: str, attempts: int = 1) -> Any:
        retries = {"total_max_attempts": attempts, "mode": "standard"}
        client = aws_client(service, service_url, retries=retries)
        client.meta.events.register("before-sign.*", partial(_say, name))
        made.append(client)
        return client

    yield make
    for client in made:
        client.close()


def _say(name: str, request: Any, **_: Any) -> None:
    request.headers["millstream-namespace"] = name


# Namespaces


def test_namespace_is_created_shown_changed_listed_and_deleted(client):
    made = client.put("/v1/namespaces/shop", json={"queues_max": 1})
    shown = client.get("/v1/namespaces/shop")
    changed = client.put("/v1/namespaces/shop", headers={"if-match": made.headers["etag"]})
    stale = client.put("/v1/namespaces/shop", headers={"if-match": made.headers["etag"]})
    page = client.get("/v1/namespaces", params={"prefix": "sho"}).json()

    assert (made.status_code, changed.status_code) == (201, 200)
    assert shown.json() == {key: made.json()[key] for key in shown.json()}
    assert (shown.json()["queues_max"], changed.json()["queues_max"]) == (1, None)
    assert len(shown.json()["account_id"]) == 12
    refused(stale, 412, "precondition_failed")
    assert [item["name"] for item in page["items"]] == ["shop"]
    assert client.delete("/v1/namespaces/shop").status_code == 204
    refused(client.get("/v1/namespaces/shop"), 404, "namespace_not_found")


def test_nonempty_or_default_namespace_is_not_deleted(client, tenant):
    name = tenant(queue="orders")

    problem = refused(client.delete(f"/v1/namespaces/{name}"), 409, "namespace_in_use")

    assert problem["holds"] == {"queues": 1}
    refused(client.delete("/v1/namespaces/default"), 409, "namespace_in_use")


@pytest.mark.parametrize(
    ("quotas", "pointer"),
    [
        ({"rates": {"calls_per_second": 0}}, "/rates/calls_per_second"),
        ({"rates": {"burst_seconds": 1e9}}, "/rates/burst_seconds"),
        ({"resources": [{"resources": "orders", "rates": {}}]}, "/resources/0/resources"),
        ({"queues_max": -1}, "/queues_max"),
        ({"calls": 1}, "/calls"),
    ],
)
def test_invalid_quotas_are_rejected(client, quotas, pointer):
    problem = refused(client.put("/v1/namespaces/odd", json=quotas), 422, "validation_failed")

    assert pointer in [fault["pointer"] for fault in problem["errors"]]


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/queues"), ("POST", "/v1/queues/orders/receive"), ("PUT", "/v1/queues/orders")],
)
def test_caller_in_unknown_namespace_is_rejected(client, method, path):
    answer = client.request(method, path, headers=in_("nowhere"))

    refused(answer, 404, "namespace_not_found")


def test_aws_clients_in_unknown_namespace_are_denied(amazon):
    with pytest.raises(ClientError) as denied:
        amazon("sqs", "nowhere").list_queues()

    assert denied.value.response["Error"]["Code"].startswith("AccessDenied")


def test_queues_are_isolated_per_namespace(client, tenant):
    each_tenant, other = tenant(queue="orders"), tenant(queue="orders")
    client.post("/v1/queues/orders/messages", json={"body": "mine"}, headers=in_(each_tenant))

    theirs = client.post("/v1/queues/orders/receive", headers=in_(other)).json()["messages"]
    mine = client.post("/v1/queues/orders/receive", headers=in_(each_tenant)).json()["messages"]
    settled = client.post(
        "/v1/queues/orders/settle",
        json={"receipt_handle": mine[0]["receipt_handle"], "action": "ack"},
        headers=in_(other),
    )

    assert (len(theirs), len(mine)) == (0, 1)
    assert settled.status_code != 200 or settled.json()["results"][0]["status"] != "ok"
    stats = client.get("/v1/queues/orders/stats", headers=in_(each_tenant)).json()
    assert stats["in_flight"] == 1


def test_guide_page_runs(service_url, client):
    """Run the commands of docs/how-to/quotas.md."""
    namespace, key = re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.DOTALL)

    made, shown = _typed(namespace.replace("/acme", "/of-the-page"), service_url).split("}{")
    stored = json.loads(f"{made}}}")
    assert json.loads(f"{{{shown}") == {key: stored[key] for key in json.loads(f"{{{shown}")}
    in_it = key.replace(" acme", " of-the-page").replace("Bearer $MILLSTREAM_API_KEY", "")
    made_key = json.loads(_typed(in_it, service_url))
    assert (made_key["namespace"], made_key["roles"]) == ("of-the-page", ["admin"])

    client.delete(f"/v1/keys/{made_key['id']}", headers=in_("of-the-page")).raise_for_status()
    client.delete("/v1/namespaces/of-the-page").raise_for_status()


# Rates


def test_hot_route_returns_rate_limit_headers_and_429(client, tenant):
    headers = in_(tenant(queue="orders", rates=ONE_IN_A_WHILE))

    passed = [client.post("/v1/queues/orders/receive", headers=headers) for _ in range(3)]
    answer = client.post("/v1/queues/orders/receive", headers=headers)

    problem = refused(answer, 429, "quota_exceeded")
    assert [one.status_code for one in passed] == [200] * 3
    assert passed[2].headers["ratelimit"].startswith('"namespace";r=0;t=')
    assert "ratelimit" not in passed[0].headers
    assert problem["type"] == "https://iana.org/assignments/http-problem-types#quota-exceeded"
    assert problem["violated-policies"] == ["namespace"]
    assert (problem["policy"], problem["retryable"]) == ("namespace", True)
    assert 300 < problem["retry_after_seconds"] <= 1_000
    assert answer.headers["retry-after"] == str(problem["retry_after_seconds"])
    assert answer.headers["ratelimit-policy"] == '"namespace";q=3;w=3600'


def test_control_plane_calls_are_counted(client, tenant):
    headers = in_(tenant(rates=ONE_IN_A_WHILE))

    passed = [client.get("/v1/queues", headers=headers) for _ in range(3)]

    assert passed[2].headers["ratelimit"].startswith('"namespace";r=0;')
    answer = client.get("/v1/queues", headers=headers)
    refused(answer, 429, "quota_exceeded")
    assert int(answer.headers["retry-after"]) > 300


def test_messages_of_batch_are_counted_and_oversized_is_rejected(client, tenant):
    globs = [
        {"resources": "queue/ord*", "rates": {"messages_per_second": 0.001, "burst_seconds": 3600}}
    ]
    headers = in_(tenant(queue="orders", resources=globs))
    two = {"messages": [{"body": "a"}, {"body": "b"}]}
    four = {"messages": [{"body": str(number)} for number in range(4)]}

    never = client.post("/v1/queues/orders/messages", json=four, headers=headers)
    first = client.post("/v1/queues/orders/messages", json=two, headers=headers)
    second = client.post("/v1/queues/orders/messages", json=two, headers=headers)

    problem = refused(never, 413, "quota_too_small")
    assert (problem["limit"], problem["retryable"]) == (3, False)
    assert first.status_code == 201
    assert refused(second, 429, "quota_exceeded")["policy"] == "queue/ord*"
    received = client.post("/v1/queues/orders/receive", headers=headers)
    assert received.status_code == 200  # adds nothing


def test_bytes_of_records_are_counted(client, tenant):
    rates = {"bytes_per_second": 0.5, "burst_seconds": 3600}
    headers = in_(tenant(stream="clicks", rates=rates))
    columns = {"data": ["eHh4" * 300], "keys": ["k"]}

    passed = client.post("/v1/streams/clicks/columns", json=columns, headers=headers)
    refusal = client.post("/v1/streams/clicks/columns", json=columns, headers=headers)

    assert passed.status_code == 200
    assert refused(refusal, 429, "quota_exceeded")["unit"] == "bytes"
    assert (
        '"namespace:bytes";q=1800;w=3600;qu="content-bytes"' in refusal.headers["ratelimit-policy"]
    )


def test_unreadable_call_is_counted(client, tenant):
    headers = in_(tenant(queue="orders", rates=ONE_IN_A_WHILE))

    answers = [
        client.post("/v1/queues/orders/settle", content=b"{", headers=headers).status_code
        for _ in range(4)
    ]

    assert answers == [415, 415, 415, 429]


def test_flood_of_one_namespace_does_not_affect_another(client, tenant):
    flooding, other = (
        tenant(queue="orders", rates={"calls_per_second": 50}),
        tenant(queue="orders", rates={"calls_per_second": 50}),
    )
    statuses = []

    for _ in range(40):
        for _ in range(5):
            client.post("/v1/queues/orders/receive", headers=in_(flooding))
        statuses.append(client.post("/v1/queues/orders/receive", headers=in_(other)).status_code)

    assert set(statuses) == {200}


# AWS protocols


def test_sqs_returns_request_throttled_with_403(client, tenant, amazon):
    name = tenant(queue="orders", rates={**ONE_IN_A_WHILE, "burst_seconds": 1})
    sqs = amazon("sqs", name)
    url = sqs.get_queue_url(QueueName="orders")["QueueUrl"]

    with pytest.raises(ClientError) as refusal:
        sqs.send_message(QueueUrl=url, MessageBody="a")
    query = client.post("/", data={"Action": "ReceiveMessage", "QueueUrl": url}, headers=in_(name))

    answer = refusal.value.response
    assert answer["Error"]["Code"] == "RequestThrottled"
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 403
    assert query.status_code == 403
    assert "<Code>RequestThrottled</Code>" in query.text


def test_boto3_retries_until_quota_allows(tenant, amazon):
    sqs = amazon("sqs", tenant(queue="orders", rates={"calls_per_second": 2}), attempts=8)
    url = sqs.get_queue_url(QueueName="orders")["QueueUrl"]

    answers = [sqs.send_message(QueueUrl=url, MessageBody="a") for _ in range(3)]

    assert sum(one["ResponseMetadata"]["RetryAttempts"] for one in answers) > 0


def test_kinesis_distinguishes_data_and_control_throttling(tenant, amazon):
    name = tenant(stream="clicks", rates={**ONE_IN_A_WHILE, "burst_seconds": 1})
    kinesis = amazon("kinesis", name)
    kinesis.put_record(StreamName="clicks", Data=b"a", PartitionKey="k")

    with pytest.raises(ClientError) as data:
        kinesis.put_records(StreamName="clicks", Records=[{"Data": b"a", "PartitionKey": "k"}] * 2)
    with pytest.raises(ClientError) as control:
        kinesis.describe_stream_summary(StreamName="clicks")

    codes = [one.value.response["Error"]["Code"] for one in (data, control)]
    assert codes == ["ProvisionedThroughputExceededException", "LimitExceededException"]


def test_get_caller_identity_is_throttled(tenant, amazon):
    sts = amazon("sts", tenant(rates={**ONE_IN_A_WHILE, "burst_seconds": 1}))
    sts.get_caller_identity()

    with pytest.raises(ClientError) as refused:
        sts.get_caller_identity()

    assert refused.value.response["Error"]["Code"] == "Throttling"


def test_each_namespace_has_its_own_aws_account(client, tenant, amazon):
    name = tenant(queue="orders")
    account = client.get(f"/v1/namespaces/{name}").json()["account_id"]

    url = amazon("sqs", name).get_queue_url(QueueName="orders")["QueueUrl"]

    assert url.endswith(f"/{account}/orders")
    assert amazon("sts", name).get_caller_identity()["Account"] == account


@pytest.mark.parametrize(("name", "code"), [("nobody", "AccessDenied"), ("a b", "ValidationError")])
def test_get_caller_identity_requires_known_namespace(amazon, name, code):
    with pytest.raises(ClientError) as refused:
        amazon("sts", name).get_caller_identity()

    assert refused.value.response["Error"]["Code"] == code


def test_queue_limit_is_enforced_on_every_protocol(client, tenant, amazon):
    name = tenant(queue="orders", queues_max=1, streams_max=0)

    native = client.put("/v1/queues/more", headers=in_(name))
    with pytest.raises(ClientError) as sqs:
        amazon("sqs", name).create_queue(QueueName="more")
    with pytest.raises(ClientError) as kinesis:
        amazon("kinesis", name).create_stream(StreamName="more", ShardCount=1)

    assert refused(native, 409, "quota_reached")["limit"] == 1
    assert sqs.value.response["Error"]["Code"] == "OverLimit"
    assert kinesis.value.response["Error"]["Code"] == "LimitExceededException"


def test_rejections_are_counted(client, tenant):
    headers = in_(tenant(rates={**ONE_IN_A_WHILE, "burst_seconds": 1}))
    client.get("/v1/queues", headers=headers)
    before = _counted(client)

    client.get("/v1/queues", headers=headers)

    assert _counted(client) == before + 1


def _counted(client: httpx.Client) -> float:
    lines = client.get("/metrics").text.splitlines()
    actual_lines = [
        line
        for line in lines
        if line.startswith('millstream_rate_limited_total{policy="namespace"}')
    ]
    return float(actual_lines[0].split()[1]) if actual_lines else 0.0


def _typed(commands: str, service_url: str) -> str:
    """Run a page's commands against this service; returns their output."""
    here = commands.replace("http://127.0.0.1:8080", service_url).replace("curl", "curl -sf")
    typed = ["sh", "-ec", here]
    return subprocess.run(typed, capture_output=True, text=True, timeout=30, check=True).stdout
