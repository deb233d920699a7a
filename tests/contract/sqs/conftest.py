"""boto3's SQS client, a raw one for the Query protocol, and new queues."""

import itertools
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.aws_clients import aws_client

NAMESPACE = "{http://queue.amazonaws.com/doc/2012-11-05/}"

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def sqs(service_url: str) -> Iterator[Any]:
    """boto3's client, which uses JSON, without retries."""
    client = aws_client("sqs", service_url)
    yield client
    client.close()


class Query:
    """A client of the Query protocol, as SDKs were before 2023."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http

    def call(self, action: str, path: str = "/", **parameters: object) -> ET.Element:
        """Return the result's element, or else the response's; raises AssertionError for an error."""
        answer = self.post(action, path, **parameters)
        assert answer.status_code == 200, answer.text
        root = ET.fromstring(answer.content)
        assert root.tag == f"{NAMESPACE}{action}Response"
        assert root.find(f"{NAMESPACE}ResponseMetadata/{NAMESPACE}RequestId") is not None
        result = root.find(f"{NAMESPACE}{action}Result")
        return root if result is None else result

    def post(self, action: str, path: str = "/", **parameters: object) -> httpx.Response:
        """Return the whole response.

        A parameter's dots are written as two underscores.
        """
        form = {name.replace("__", "."): str(value) for name, value in parameters.items()}
        data = {"Action": action, "Version": "2012-11-05", **form}
        return self.http.post(path, data=data)

    def error(self, action: str, path: str = "/", **parameters: object) -> tuple[int, str, str]:
        """Return the status, code and message of an error."""
        answer = self.post(action, path, **parameters)
        assert answer.headers["content-type"] == "text/xml"
        root = ET.fromstring(answer.content)
        assert root.tag == f"{NAMESPACE}ErrorResponse"
        assert root.find(f"{NAMESPACE}RequestId") is not None
        told = text_of(root, "Error/Type"), text_of(root, "Error/Code")
        assert told[0] == ("Sender" if answer.status_code < 500 else "Receiver")
        return answer.status_code, told[1], text_of(root, "Error/Message")


def text_of(element: ET.Element, path: str) -> str:
    """Return the text at a path of names without their namespace."""
    found = element.find("/".join(f"{NAMESPACE}{name}" for name in path.split("/")))
    assert found is not None, path
    return found.text or ""


def texts_of(element: ET.Element, path: str) -> list[str]:
    """Return the texts of all elements at a path."""
    steps = "/".join(f"{NAMESPACE}{name}" for name in path.split("/"))
    return [found.text or "" for found in element.findall(steps)]


def map_of(
    element: ET.Element, name: str, key: str = "Name", value: str = "Value"
) -> dict[str, str]:
    """Parse a flattened map."""
    entries = element.findall(f"{NAMESPACE}{name}")
    return {text_of(entry, key): text_of(entry, value) for entry in entries}


@pytest.fixture
def query(client: httpx.Client) -> Query:
    return Query(client)


@pytest.fixture
def name() -> str:
    """A name of a queue that is not in use."""
    return f"sqs-{next(_numbers)}"


@pytest.fixture
def url(sqs: Any, name: str) -> str:
    """The URL of a new standard queue."""
    return str(sqs.create_queue(QueueName=name)["QueueUrl"])


@pytest.fixture
def fifo_url(sqs: Any, name: str) -> str:
    """The URL of a new FIFO queue that deduplicates by content."""
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    created = sqs.create_queue(QueueName=f"{name}.fifo", Attributes=attributes)
    return str(created["QueueUrl"])


def refusal(error: ClientError) -> tuple[int, str, str]:
    """Return the status, code and message of a rejected boto3 call."""
    returned_error = error.response["Error"]
    return (
        error.response["ResponseMetadata"]["HTTPStatusCode"],
        returned_error["Code"],
        returned_error["Message"],
    )


def arn_of(sqs: Any, url: str) -> str:
    """Return a queue's ARN."""
    response = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    return str(response["Attributes"]["QueueArn"])
