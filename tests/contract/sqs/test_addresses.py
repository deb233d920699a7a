"""Addresses of queues and of the service, in each protocol."""

import json
import xml.etree.ElementTree as ET
from urllib.parse import urlsplit

import pytest

NO_QUEUE = "AWS.SimpleQueueService.NonExistentQueue"
SEND = {"Action": "SendMessage", "MessageBody": "hello"}
DIGEST = "5d41402abc4b2a76b9719d911017c592"


def by_json(client, address):
    content = json.dumps({"QueueUrl": address, "MessageBody": "hello"})
    return client.post("/", content=content, headers={"x-amz-target": "AmazonSQS.SendMessage"})


def by_json_at_address(client, address):
    content = json.dumps({"QueueUrl": address, "MessageBody": "hello"})
    headers = {"x-amz-target": "AmazonSQS.SendMessage"}
    return client.post(urlsplit(address).path, content=content, headers=headers)


def by_form(client, address):
    return client.post("/", data=SEND | {"QueueUrl": address})


def by_form_at_address(client, address):
    return client.post(urlsplit(address).path, data=SEND)


def by_get(client, address):
    return client.get("/", params=SEND | {"QueueUrl": address})


def by_get_at_address(client, address):
    return client.get(urlsplit(address).path, params=SEND)


AT_ADDRESS = (by_json_at_address, by_form_at_address, by_get_at_address)
BY_PARAMETER = (by_json, by_form, by_get)
FORMS = {
    "own": "{url}",
    "slash": "{url}/",
    "host": "https://sqs.eu-west-1.amazonaws.com{path}",
    "host and slash": "https://sqs.eu-west-1.amazonaws.com{path}/",
}
BARE_FORMS = {"path": "{path}", "path and slash": "{path}/", "name": "{name}"}


def addressed(form, url):
    path = urlsplit(url).path
    return form.format(url=url, path=path, name=path.rpartition("/")[2])


@pytest.mark.parametrize("call", [*AT_ADDRESS, *BY_PARAMETER])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_queue_is_resolved_at_each_address(client, url, form, call):
    """The samples of the API reference end with a slash, and got a problem document."""
    answer = call(client, addressed(form, url))

    assert answer.status_code == 200, answer.text
    assert DIGEST in answer.text


@pytest.mark.parametrize("call", BY_PARAMETER)
@pytest.mark.parametrize("form", BARE_FORMS.values(), ids=BARE_FORMS)
def test_queue_is_resolved_without_host(client, url, form, call):
    answer = call(client, addressed(form, url))

    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    "address",
    [
        "http://some-host",
        "http://some-host/",
        "http://localhost/orders",
        "/",
        "http://h/123/orders",
    ],
)
def test_foreign_address_is_no_queue_in_json(client, address):
    """Programs catch QueueDoesNotExist, as Amazon answers, and got InvalidAddress."""
    answer = by_json(client, address)

    assert answer.status_code == 400
    assert answer.headers["x-amzn-query-error"] == f"{NO_QUEUE};Sender"
    assert answer.json()["__type"] == "com.amazonaws.sqs#QueueDoesNotExist"


@pytest.mark.parametrize("tail", ["", "/", "/orders/messages", "/orders//", "//"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_invalid_path_is_rejected_in_protocol(client, method, tail):
    answer = client.request(method, f"/123456789012{tail}", params=SEND)

    assert answer.headers["content-type"] == "text/xml"
    assert error_code(answer) in ("InvalidAddress", NO_QUEUE)


@pytest.mark.parametrize("action", ["CreateQueue", "ListQueues", "Nonsense"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_action_of_service_is_invalid_at_queue(client, url, method, action):
    """CreateQueue was carried out at the address of another queue."""
    parameters = {"Action": action, "QueueName": "misplaced"}
    answer = client.request(method, url, params=parameters)

    assert answer.status_code == 400
    assert error_code(answer) == "InvalidAction"
    assert f"<Message>The action {action} is not valid for this endpoint.</Message>" in answer.text


def test_other_queue_is_named_at_address_of_queue(client, sqs, url, name):
    other = sqs.create_queue(QueueName=f"{name}-other")["QueueUrl"]
    by_name = client.get(url, params={"Action": "GetQueueUrl", "QueueName": f"{name}-other"})
    parameters = {"Action": "GetQueueAttributes", "AttributeName": "QueueArn", "QueueUrl": other}
    by_url = client.get(url, params=parameters)

    assert f"<QueueUrl>{other}</QueueUrl>" in by_name.text
    assert f":{name}-other</Value>" in by_url.text


@pytest.mark.parametrize("accept", ["*/*", "application/json"])
@pytest.mark.parametrize("slash", ["", "/"])
def test_get_of_queue_without_action_is_unknown(client, url, slash, accept):
    answer = client.get(url + slash, headers={"accept": accept})

    assert answer.status_code == 404
    assert answer.headers["content-type"] == "text/xml"
    assert ET.fromstring(answer.content).tag == "UnknownOperationException"


def error_code(answer):
    code = ET.fromstring(answer.content).find(".//{*}Code")
    assert code is not None
    return code.text
