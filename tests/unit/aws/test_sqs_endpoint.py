"""Request routing and queue names of the SQS endpoint, without a server."""

import pytest

from api.auth.audit import Auditing
from api.auth.authenticator import OpenMode
from api.auth.endpoint_services import EndpointServices
from api.auth.revalidation import SessionRevalidator
from api.aws.protocol.endpoint import AwsEndpoint
from api.aws.protocol.errors import AwsError
from api.aws.protocol.request_id import new_request_id
from api.aws.sqs.actions.receive import _release_if_disconnected
from api.aws.sqs.queues.urls import (
    account_of_url,
    check_address,
    queue_arn,
    queue_of_arn,
    queue_of_url,
    queue_url,
)
from api.aws.sqs.service import SQS
from api.errors import ClientDisconnected
from api.observability.metric_buffers import MetricBuffers
from storage.bootstrap import Storage
from storage.domain.names import QueueName

ACCOUNT = "123456789012"


def no_storage() -> Storage:
    raise AssertionError("nothing is asked of it")


@pytest.fixture
def door() -> AwsEndpoint:
    deployment = EndpointServices(
        authenticator=OpenMode(),
        revalidator=SessionRevalidator(OpenMode()),
        auditing=Auditing(no_storage),
        counts=MetricBuffers(),
        storage=no_storage,
        durability="always",
        region="us-east-1",
    )
    return AwsEndpoint(SQS, deployment, protocol="sqs", noun="queue")


@pytest.mark.parametrize(
    ("method", "path", "query", "taken"),
    [
        ("POST", "/", b"", True),
        ("POST", f"/{ACCOUNT}/orders", b"", True),
        ("GET", f"/{ACCOUNT}/orders", b"", True),
        ("GET", "/", b"Action=ListQueues", True),
        ("GET", "/", b"", False),
        ("PUT", "/", b"", False),
        ("DELETE", f"/{ACCOUNT}/orders", b"", False),
        ("POST", "/v1/queues", b"", False),
        ("POST", "/orders", b"", False),
        ("POST", "/12345678901/orders", b"", False),
        ("POST", f"/{ACCOUNT}/orders/", b"", True),
        ("GET", f"/{ACCOUNT}/orders/", b"", True),
        ("POST", f"/{ACCOUNT}/orders/messages", b"", True),
        ("GET", f"/{ACCOUNT}", b"", True),
    ],
)
def test_endpoint_is_matched_by_method_and_path(door, method, path, query, taken):
    place = door.find(method, path, query)

    assert (place is not None) is taken
    assert place is None or place.takes_body is (method == "POST")


def test_request_ids_are_unique():
    assert len({new_request_id() for _ in range(100)}) == 100


def test_queue_url_is_resolved_regardless_of_host():
    for address in ("http://localhost:8080", "https://sqs.us-east-1.amazonaws.com"):
        url = queue_url(address, ACCOUNT, "orders.fifo")
        assert queue_of_url(url, "default") == QueueName("orders.fifo")
    assert queue_of_url("orders.fifo", "default") == QueueName("orders.fifo")


INVALID_FORMS = [
    "http://localhost",
    "http://localhost/",
    "http://localhost/orders",
    f"http://localhost/{ACCOUNT}/",
    f"http://localhost/{ACCOUNT}/" + "x" * 3_000,
]


@pytest.mark.parametrize(
    "url",
    [
        *INVALID_FORMS,
        "",
        "/",
        "a b",
        f"http://localhost/{ACCOUNT}/a b",
        f"http://localhost/{ACCOUNT}/..",
        f"http://localhost/{ACCOUNT}//",
    ],
)
def test_queue_of_invalid_url_does_not_exist(url):
    with pytest.raises(AwsError) as refused:
        queue_of_url(url, "default")

    assert refused.value.fault.code == "AWS.SimpleQueueService.NonExistentQueue"


@pytest.mark.parametrize("url", INVALID_FORMS)
def test_invalid_address_is_rejected(url):
    with pytest.raises(AwsError) as refused:
        check_address(url)

    assert refused.value.fault.code == "InvalidAddress"


@pytest.mark.parametrize(
    ("url", "account"),
    [
        ("orders", ""),
        ("orders/", ""),
        (f"http://localhost/{ACCOUNT}/orders", ACCOUNT),
        (f"http://localhost/{ACCOUNT}/orders/", ACCOUNT),
    ],
)
def test_account_is_read_from_url(url, account):
    check_address(url)

    assert account_of_url(url) == account
    assert queue_of_url(url, "default") == QueueName("orders")


def test_arn_is_resolved_only_in_own_account():
    arn = queue_arn("us-east-1", ACCOUNT, "orders")

    assert queue_of_arn(arn, "default", ACCOUNT) == QueueName("orders")
    assert queue_of_arn(arn, "default", "210987654321") is None
    assert queue_of_arn("orders", "default", ACCOUNT) is None
    assert queue_of_arn(arn.replace("orders", ".."), "default", ACCOUNT) is None


class LeavingClient:
    """A receive call whose client disconnects before the response is written."""

    def __init__(self) -> None:
        self.storage = self.queues = self
        self.released: list[object] = []

    def is_client_connected(self) -> bool:
        return False

    async def release(self, _: QueueName, messages: list[object]) -> None:
        self.released += messages


@pytest.mark.parametrize("messages", [[], ["one", "two"]])
async def test_messages_are_released_when_client_disconnects(messages):
    call = LeavingClient()

    with pytest.raises(ClientDisconnected):
        await _release_if_disconnected(call, QueueName("orders"), messages)  # type: ignore[arg-type]

    assert call.released == messages
