"""The requests of KEDA's scalers, as the manifests of docs/how-to/autoscale.md configure them."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import yaml

from storage.settings import StorageSettings
from tests.aws_clients import aws_client
from tests.contract.conftest import running_service
from tests.documentation import DOCS, blocks

MANIFESTS = [
    manifest
    for block in blocks(DOCS / "how-to" / "autoscale.md")
    if block.language == "yaml"
    for manifest in yaml.safe_load_all(block.text)
]
TRIGGERS: dict[str, dict[str, Any]] = {
    manifest["metadata"]["name"]: manifest["spec"]["triggers"][0]
    for manifest in MANIFESTS
    if manifest.get("kind") == "ScaledObject"
}
AUTHENTICATION = {
    manifest["metadata"]["name"]: {one["parameter"] for one in manifest["spec"]["secretTargetRef"]}
    for manifest in MANIFESTS
    if manifest.get("kind") == "TriggerAuthentication"
}
ACCOUNT = "123456789012"
MESSAGES, IN_FLIGHT, RECORDS = 7, 2, 12


@pytest.fixture
def metadata(name):
    """Return a trigger's metadata, with an object's name replaced by one that is not in use."""

    def of(scaled: str, object_name: str) -> dict[str, str]:
        found = TRIGGERS[scaled]["metadata"]
        return {key: value.replace(f"/{object_name}", f"/{name}") for key, value in found.items()}

    return of


def fill_queue(client: httpx.Client, name: str) -> None:
    """Make a queue with messages, some of them in flight."""
    client.put(f"/v1/queues/{name}", json={}).raise_for_status()
    messages = [{"body": str(number)} for number in range(MESSAGES)]
    client.post(f"/v1/queues/{name}/messages", json={"messages": messages}).raise_for_status()
    received = client.post(f"/v1/queues/{name}/receive", json={"messages_max": IN_FLIGHT})
    assert len(received.json()["messages"]) == IN_FLIGHT


def read_number(viewer: httpx.Client, metadata: dict[str, str]) -> float:
    """Read a number as the scaler `metrics-api` does."""
    answer = viewer.get(urlsplit(metadata["url"]).path)
    value = answer.raise_for_status().json()[metadata["valueLocation"]]
    assert isinstance(value, int | float)
    return value


@pytest.fixture(scope="module")
def closed_url(service: tuple[str, StorageSettings]) -> Iterator[str]:
    """The URL of a process of the service that requires keys."""
    _, stores = service
    environment = {
        "REDIS_URL": stores.redis_url,
        "DATABASE_URL": stores.database_url,
        "MILLSTREAM_SECRET_KEYS": ",".join(stores.secret_keys),
        "MILLSTREAM_AUTH": "keys",
    }
    with running_service(environment) as (url, _):
        yield url


@pytest.fixture
def viewer(client, closed_url, name) -> Iterator[httpx.Client]:
    """A client whose key may see everything, and change nothing."""
    made = client.post("/v1/keys", json={"name": name, "roles": ["viewer"]}).raise_for_status()
    with httpx.Client(base_url=closed_url) as http:
        [scheme] = {one["metadata"].get("authMode") for one in TRIGGERS.values()} - {None}
        http.headers["authorization"] = f"{scheme} {made.json()['secret']}"
        assert http.put(f"/v1/queues/{name}", json={}).status_code == 403
        yield http


def test_triggers_authenticate_by_what_their_scaler_takes():
    parameters = {
        "aws-sqs-queue": {"awsAccessKeyID", "awsSecretAccessKey"},
        "metrics-api": {"token"},
    }

    for trigger in TRIGGERS.values():
        assert AUTHENTICATION[trigger["authenticationRef"]["name"]] == parameters[trigger["type"]]


def test_sqs_scaler_counts_waiting_messages_and_those_in_flight(client, closed_url, name, metadata):
    fill_queue(client, name)
    settings = metadata("orders-worker", "orders")
    made = client.post("/v1/keys", json={"name": name, "kind": "access_key", "roles": ["viewer"]})
    pair = made.json()["id"], made.json()["secret"]
    account = aws_client("sts", closed_url, pair=pair).get_caller_identity()["Account"]
    sqs = aws_client("sqs", closed_url, pair=pair)

    attributes = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
    url = settings["queueURL"].replace(ACCOUNT, account)
    counts = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=attributes)

    assert settings["scaleOnInFlight"] == "true"
    assert settings["queueURL"].startswith(f"{settings['awsEndpoint']}/{ACCOUNT}/")
    assert sum(int(counts["Attributes"][one]) for one in attributes) == MESSAGES


def test_metrics_scaler_reads_ready_messages(client, name, metadata, viewer):
    fill_queue(client, name)

    assert read_number(viewer, metadata("emails-worker", "emails")) == MESSAGES - IN_FLIGHT


def test_metrics_scaler_reads_lag_of_group(client, name, metadata, viewer):
    client.put(f"/v1/streams/{name}", json={}).raise_for_status()
    client.put(f"/v1/groups/{name}", json={"stream": name}).raise_for_status()
    records = [{"data": number} for number in range(RECORDS)]
    client.post(f"/v1/streams/{name}/records", json={"records": records}).raise_for_status()

    assert read_number(viewer, metadata("billing", "billing")) == RECORDS


def test_metrics_of_the_api_are_exported(client):
    [values] = [manifest for manifest in MANIFESTS if "api" in manifest]
    [metric] = values["api"]["autoscaling"]["metrics"]

    assert f"\n{metric['pods']['metric']['name']} " in client.get("/metrics").text
