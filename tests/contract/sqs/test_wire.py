"""HTTP below SQS: forms of calls, choice of protocol, and features shared with the others."""

import json
import re
import socket
import time
import xml.etree.ElementTree as ET
from urllib.parse import urlsplit

import pytest

from storage.domain import limits

JSON = "application/x-amz-json-1.0"
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def post(client, operation="AmazonSQS.ListQueues", content=b"{}", path="/", **headers):
    fields = {"content-type": JSON, "x-amz-target": operation, **headers}
    return client.post(path, content=content, headers=fields)


def error_of(answer):
    return answer.json()["__type"].partition("#")[2], answer.headers["x-amzn-query-error"]


def test_each_response_has_unique_request_id(client, url):
    body = json.dumps({"QueueUrl": url, "MessageBody": "x"})
    answers = [post(client, "AmazonSQS.SendMessage", body) for _ in range(2)]
    ids = [answer.headers["x-amzn-requestid"] for answer in answers]

    assert all(UUID.fullmatch(one) for one in ids)
    assert ids[0] != ids[1]
    assert answers[0].headers["content-type"] == JSON


def test_xml_response_repeats_its_request_id(client):
    answer = client.post("/", data={"Action": "ListQueues"})
    found = ET.fromstring(answer.content).find(".//{*}RequestId")

    assert found is not None
    assert found.text == answer.headers["x-amzn-requestid"]


def test_chunked_body_gets_same_response(client, url):
    body = json.dumps({"QueueUrl": url, "MessageBody": "hello"}).encode()
    whole = post(client, "AmazonSQS.SendMessage", body)
    pieces = post(client, "AmazonSQS.SendMessage", iter([body[:10], body[10:]]))

    assert whole.json()["MD5OfMessageBody"] == pieces.json()["MD5OfMessageBody"]
    assert whole.headers.keys() - {"content-length"} == pieces.headers.keys() - {"content-length"}


def test_json_is_accepted_at_path_of_queue(client, url):
    body = json.dumps({"QueueUrl": url, "MessageBody": "x"})

    assert post(client, "AmazonSQS.SendMessage", body, path=urlsplit(url).path).status_code == 200


def test_operation_without_result_returns_empty_object(client, url):
    answer = post(client, "AmazonSQS.DeleteQueue", json.dumps({"QueueUrl": url}))

    assert (answer.status_code, answer.content) == (200, b"{}")


@pytest.mark.parametrize("target", ["AmazonSQS.Nonsense", "AmazonSNS.ListQueues", "ListQueues", ""])
def test_unknown_operation_is_rejected(client, target):
    answer = post(client, target)

    assert answer.status_code == 400
    assert error_of(answer) == ("UnknownOperationException", "InvalidAction;Sender")


def test_form_is_query_protocol_despite_target_header(client):
    """Perl's Amazon::SQS::Simple sends this form."""
    headers = {"x-amz-target": "AmazonSQSv20121105.ListQueues"}
    answer = client.post("/", data={"Action": "ListQueues"}, headers=headers)

    assert answer.status_code == 200
    assert b"<ListQueuesResult" in answer.content


def test_json_is_recognized_despite_form_content_type(client, url):
    body = json.dumps({"QueueUrl": url, "MessageBody": "x"})
    kind = "application/x-www-form-urlencoded"
    answer = post(client, "AmazonSQS.SendMessage", body, **{"content-type": kind})

    assert answer.json()["MessageId"]


def test_unknown_or_missing_action_is_rejected(query, client):
    assert query.error("Nonsense")[:2] == (400, "InvalidAction")
    for answer in (client.post("/"), client.post("/", data={"QueueName": "x"})):
        assert answer.status_code == 400
        assert b"<Code>MissingAction</Code>" in answer.content


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'"x"', b"\xff", b'{"QueueUrl":5}', b'{"QueueUrl":["x"]}', b"[" * 9999],
)  # fmt: skip
def test_invalid_input_is_rejected(client, content):
    answer = post(client, "AmazonSQS.SendMessage", content)

    assert answer.status_code == 400
    expected = "MissingRequiredParameterException" if not content else "SerializationException"
    assert error_of(answer)[0] == expected


def test_null_and_unknown_members_are_ignored(client, url):
    request = {"QueueUrl": url, "MessageBody": "x", "DelaySeconds": None, "Nonsense": [1]}

    assert post(client, "AmazonSQS.SendMessage", json.dumps(request)).status_code == 200


def test_oversized_call_is_rejected(client):
    answer = post(client, content=b" " * (limits.REQUEST_BYTES_MAX + 1))

    assert answer.status_code == 413
    assert error_of(answer)[1] == "RequestEntityTooLarge;Sender"


def test_foreign_origin_is_rejected_in_protocol_format(client):
    in_json = post(client, host="evil.example")
    in_query = client.post(
        "/", data={"Action": "ListQueues"}, headers={"origin": "http://evil.example"}
    )

    assert in_json.status_code == in_query.status_code == 403
    assert error_of(in_json)[1] == "AccessDenied;Sender"
    assert b"<Code>AccessDenied</Code>" in in_query.content


def test_browser_visit_returns_404(client):
    answer = client.get("/")

    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


def test_requests_and_messages_are_counted(client, url):
    def counted(line):
        metrics = client.get("/metrics").text
        found = re.search(rf"^{re.escape(line)} (.*)$", metrics, re.MULTILINE)
        return float(found[1]) if found else 0.0

    lines = [
        'millstream_request_duration_seconds_count{operation="SendMessage",protocol="sqs",status_class="2xx"}',
        'millstream_messages_received_total{kind="queue",protocol="sqs"}',
    ]
    before = [counted(line) for line in lines]
    body = json.dumps({"QueueUrl": url, "MessageBody": "x"})
    post(client, "AmazonSQS.SendMessage", body).raise_for_status()

    assert [counted(line) for line in lines] == [count + 1 for count in before]


def test_disconnected_waiting_client_takes_nothing(sqs, url, service_url):
    where = urlsplit(service_url)
    body = json.dumps({"QueueUrl": url, "WaitTimeSeconds": 20})
    with socket.create_connection((where.hostname, where.port)) as gone:
        gone.sendall(
            f"POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: AmazonSQS.ReceiveMessage\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        time.sleep(0.2)
    time.sleep(0.1)
    sqs.send_message(QueueUrl=url, MessageBody="x")

    [received] = sqs.receive_message(QueueUrl=url, AttributeNames=["All"])["Messages"]

    assert received["Attributes"]["ApproximateReceiveCount"] == "1"
