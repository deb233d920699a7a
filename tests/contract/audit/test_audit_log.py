"""Administrative calls of every protocol are in the audit log, without secrets."""

import json

import pytest

from api.app import create_app
from api.aws.kinesis.service import KINESIS
from api.aws.sqs.service import SQS
from api.config.settings import Settings
from api.native.audited_route import AuditedRoute
from storage.domain.access.audit import Chain, is_administrative
from tests.aws_clients import aws_client

pytestmark = pytest.mark.one_store


def entries(client, resource, **more):
    answer = client.get("/v1/audit", params={"resource": resource, "order": "oldest", **more})
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


def operation_and_outcome(entry):
    return entry["operation"], entry["action"], entry["outcome"]


def test_queue_operations_are_recorded_with_changes(client, name):
    path = f"/v1/queues/{name}"
    client.put(path, json={"delay_seconds": 5}, headers={"x-request-id": f"made-{name}"})
    client.patch(path, json={"delay_seconds": 7})
    client.post(f"{path}/messages", json={"body": "s3cr3t"})
    client.post(f"{path}/purges")
    client.delete(path)

    made, changed, purged, deleted = entries(client, f"queues/{name}")

    assert operation_and_outcome(made) == ("put_queue", "queue:manage", "done")
    assert made["before"] is None
    assert made["after"]["delay_ms"] == 5_000
    assert (made["protocol"], made["principal"], made["authenticated"]) == (
        "rest",
        "local-administrator",
        "open",
    )
    assert made["address"] == "127.0.0.1"
    assert made["request_id"] == f"made-{name}"
    assert (changed["before"], changed["after"]) == ({"delay_ms": 5_000}, {"delay_ms": 7_000})
    assert operation_and_outcome(purged) == ("purge_queue", "queue:purge", "done")
    assert purged["resource"] == f"queues/{name}/purges"
    assert (purged["before"], purged["after"]) == (None, {"purged": 1})
    assert operation_and_outcome(deleted) == ("delete_queue", "queue:manage", "done")
    assert (deleted["before"]["delay_ms"], deleted["after"]) == (7_000, None)


@pytest.mark.parametrize(
    ("method", "path", "body", "outcome"),
    [
        ("DELETE", "", None, "refused:queue_not_found"),
        ("PUT", "", {"delay_seconds": -1}, "refused:validation_failed"),
        ("PUT", "", {"no_such_field": 1}, "refused:validation_failed"),
        ("PATCH", "", b"{", "refused:validation_failed"),
        ("DELETE", "/messages/m1", None, "refused:queue_not_found"),
    ],
)
def test_rejected_operations_are_recorded(client, name, method, path, body, outcome):
    said = {"json": body} if isinstance(body, dict) else {"content": body}
    kind = {"content-type": "application/json"} if body else {}
    answer = client.request(method, f"/v1/queues/{name}{path}", headers=kind, **said)

    assert answer.is_client_error
    [entry] = entries(client, f"queues/{name}")
    assert entry["outcome"] == outcome
    assert (entry["before"], entry["after"]) == (None, None)


def test_webhook_is_recorded_without_secrets(client, queue, name, service_database_url):
    path = f"/v1/webhooks/{name}"
    config = {
        "source": f"queue:{queue.rpartition('/')[2]}",
        "url": "http://127.0.0.1:9/T000/s3cr3t-place?token=s3cr3t-token",
        "headers": {"authorization": "Bearer s3cr3t-header"},
    }
    made = client.put(path, json=config)
    rotated = client.post(f"{path}/secret", json={})

    actual_entries = entries(client, f"webhooks/{name}")

    assert [operation_and_outcome(entry)[0] for entry in actual_entries] == [
        "put_webhook",
        "rotate_webhook_secret",
    ]
    everything = json.dumps(client.get("/v1/audit", params={"limit": 1000}).json())
    assert "s3cr3t" not in everything
    assert made.json()["secret"] not in everything
    assert rotated.json()["secret"] not in everything


def test_sqs_calls_are_audited(client, name, service_url):
    sqs = aws_client("sqs", service_url)
    url = sqs.create_queue(QueueName=name, Attributes={"DelaySeconds": "5"})["QueueUrl"]
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "6"})
    sqs.send_message(QueueUrl=url, MessageBody="s3cr3t")
    sqs.get_queue_attributes(QueueUrl=url)
    with pytest.raises(sqs.exceptions.ClientError):
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "9999"})
    sqs.tag_queue(QueueUrl=url, Tags={"team": "blue"})
    sqs.delete_queue(QueueUrl=url)

    actual_entries = entries(client, f"queues/{name}")

    assert [entry["protocol"] for entry in actual_entries] == ["sqs"] * 5
    assert [(entry["operation"], entry["outcome"]) for entry in actual_entries] == [
        ("CreateQueue", "done"),
        ("SetQueueAttributes", "done"),
        ("SetQueueAttributes", "refused:InvalidAttributeValue"),
        ("TagQueue", "done"),
        ("DeleteQueue", "done"),
    ]
    assert (actual_entries[1]["before"], actual_entries[1]["after"]) == (
        {"delay_ms": 5_000},
        {"delay_ms": 6_000},
    )
    assert actual_entries[3]["after"] == {"tags": {"team": "blue"}}


def test_kinesis_calls_are_audited(client, name, service_url):
    kinesis = aws_client("kinesis", service_url)
    kinesis.create_stream(StreamName=name, ShardCount=1)
    arn = kinesis.describe_stream_summary(StreamName=name)["StreamDescriptionSummary"]["StreamARN"]
    kinesis.increase_stream_retention_period(StreamARN=arn, RetentionPeriodHours=48)
    kinesis.put_record(StreamName=name, Data=b"s3cr3t", PartitionKey="k")
    kinesis.delete_stream(StreamName=name)

    actual_entries = entries(client, f"streams/{name}")

    assert [
        (entry["protocol"], entry["operation"], entry["outcome"]) for entry in actual_entries
    ] == [
        ("kinesis", "CreateStream", "done"),
        ("kinesis", "IncreaseStreamRetentionPeriod", "done"),
        ("kinesis", "DeleteStream", "done"),
    ]
    assert actual_entries[1]["after"] == {"retention_ms": 48 * 3_600_000}


def test_pages_continue_at_cursor(client, name):
    for delay in range(5):
        client.put(f"/v1/queues/{name}", json={"delay_seconds": delay})

    about = {"resource": f"queues/{name}", "limit": 2}
    first = client.get("/v1/audit", params=about).json()
    second = client.get("/v1/audit", params={**about, "cursor": first["next_cursor"]}).json()
    third = client.get("/v1/audit", params={**about, "cursor": second["next_cursor"]}).json()

    definitions = [entry["after"] for page in (first, second, third) for entry in page["items"]]
    assert [after["delay_ms"] for after in definitions] == [4_000, 3_000, 2_000, 1_000, 0]
    assert (third["next_cursor"], first["complete"]) == (None, False)
    other = client.get("/v1/audit", params={"cursor": first["next_cursor"]})
    assert other.json()["code"] == "invalid_cursor"


def test_entries_are_available_as_lines(client, queue):
    name = queue.rpartition("/")[2]
    answer = client.get(
        "/v1/audit",
        params={"resource": f"queues/{name}"},
        headers={"accept": "application/x-ndjson"},
    )

    entry, end = [json.loads(line) for line in answer.text.splitlines()]

    assert entry["operation"] == "put_queue"
    assert end == {"type": "end", "next_cursor": None, "complete": False, "whole": False}


def test_hash_chain_is_verifiable_over_api(client, queue):
    chain = Chain(whole=True)
    cursor: str | None = ""
    while cursor is not None:
        page = client.get(
            "/v1/audit", params={"order": "oldest", "limit": 50, "cursor": cursor}
        ).json()
        assert page["complete"]
        assert chain.check(page["items"]) is None
        cursor = page["next_cursor"]

    assert chain.seq > 0


def test_every_administrative_route_is_audited():
    app = create_app(Settings(_env_file=None))
    routes = [route for route in app.control.state.cold_routes if route.methods - {"GET", "HEAD"}]

    left_out = {
        route.name
        for route in routes
        if not (isinstance(route, AuditedRoute) and route.audited is not None)
    }

    assert left_out == DATA_PLANE | OF_CALLERS


DATA_PLANE = {
    *("join_group", "leave_group", "receive_event"),
    *("stage_records", "discard_staged", "commit_staged"),
    *("backtest_match", "explain_message", "test_match", "translate_condition"),
}
OF_CALLERS = {"log_in", "log_out", "make_ticket"}
"""Calls about the caller itself are not recorded; a failed login is."""


def test_no_hot_route_is_administrative():
    app = create_app(Settings(_env_file=None))

    actions = {route.action for route in app.dispatcher.routes if route.action is not None}
    assert not any(map(is_administrative, actions))


def test_every_aws_operation_except_message_writes_is_audited():
    reading = ("Get", "List", "Describe")
    audited = {
        operation.name
        for service in (SQS, KINESIS)
        for operation in service.operations.values()
        if operation.action is not None and is_administrative(operation.action)
    }
    everything = {*SQS.operations, *KINESIS.operations}

    assert everything - audited == {
        *(name for name in everything if name.startswith(reading)),
        *("SendMessage", "SendMessageBatch", "ReceiveMessage", "DeleteMessage"),
        *("DeleteMessageBatch", "ChangeMessageVisibility", "ChangeMessageVisibilityBatch"),
        *("PutRecord", "PutRecords", "SubscribeToShard"),
    }
