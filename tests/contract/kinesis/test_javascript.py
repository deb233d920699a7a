"""The AWS SDK for JavaScript, unmodified except for the endpoint: it speaks HTTP/2.

`javascript/exercise.mjs` has the steps.
"""

import base64
from pathlib import Path

import pytest

from tests.javascript import install, steps_of

HERE = Path(__file__).parent / "javascript"


@pytest.fixture(scope="module")
def steps(service_url):
    """The output of each step of the script, by name."""
    install(HERE)
    return steps_of(HERE, "node", "exercise.mjs", service_url, "javascript")


def test_stream_is_created_and_described(steps):
    summary = steps["created"]["summary"]

    assert steps["created"]["waited"] == "SUCCESS"
    assert steps["created"]["protocol"] == "h2"
    assert (summary["StreamStatus"], summary["OpenShardCount"]) == ("ACTIVE", 1)
    assert summary["StreamCreationTimestamp"].startswith("20")  # a Date


def test_records_round_trip(steps):
    put, batch, records = steps["put"]["put"], steps["put"]["batch"], steps["got"]["records"]

    assert batch["FailedRecordCount"] == 0
    assert [base64.b64decode(record["Data"]) for record in records] == [
        b"\x00\x7f\x80\xff",
        b"one",
        b"two",
    ]
    assert [record["SequenceNumber"] for record in records] == [
        put["SequenceNumber"],
        *(record["SequenceNumber"] for record in batch["Records"]),
    ]
    assert records[0]["PartitionKey"] == "blüe"


def test_subscription_pushes_records(steps):
    assert steps["subscribed"] == {"records": steps["got"]["records"], "behind": 0}


def test_end_of_shard_names_its_children(steps):
    assert len(steps["split"]["shards"]) == 3
    assert steps["split"]["next"] is None
    assert [child["ShardId"][-1] for child in steps["split"]["children"]] == ["1", "2"]


def test_rejection_has_its_error_class(steps):
    refused = steps["refused"]

    assert (refused["name"], refused["is_its_class"]) == ("ResourceNotFoundException", True)
    assert refused["status"] == 400
    assert refused["message"].startswith("Stream javascript under account ")
    assert refused["request_id"]
    assert refused["extended_request_id"]
