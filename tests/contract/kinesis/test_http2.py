"""SubscribeToShard over HTTP/2: the subscriptions of all shards share a connection."""

import json
from typing import Any

from botocore.eventstream import EventStreamBuffer
from h2.errors import ErrorCodes

from tests.contract.kinesis.conftest import arn_of
from tests.http2_client import Http2Client, http2

SHARDS = 6


def headers_of(operation: str, body: bytes) -> list[tuple[bytes, bytes]]:
    return [
        (b"x-amz-target", f"Kinesis_20131202.{operation}".encode()),
        (b"content-type", b"application/x-amz-json-1.1"),
        (b"content-length", b"%d" % len(body)),
    ]


def begin(connection: Http2Client, operation: str, parameters: Any) -> int:
    body = json.dumps(parameters).encode()
    return connection.begin(b"POST", b"/", headers_of(operation, body), body=body)


def events_of(body: bytes) -> list[Any]:
    """Decode the complete events of a response that continues."""
    buffer = EventStreamBuffer()
    buffer.add_data(body)
    return [
        json.loads(event.payload)
        for event in buffer
        if event.headers[":event-type"] == "SubscribeToShardEvent"
    ]


def records_of(connection: Http2Client, stream_id: int) -> list[str]:
    events = events_of(connection.answers[stream_id].body)
    return [record["PartitionKey"] for event in events for record in event["Records"]]


def test_subscriptions_share_a_connection(kinesis, service_url, name):
    kinesis.create_stream(StreamName=name, ShardCount=SHARDS)
    kinesis.get_waiter("stream_exists").wait(StreamName=name)
    arn = arn_of(kinesis, name)
    consumer = kinesis.register_stream_consumer(StreamARN=arn, ConsumerName="one")["Consumer"]
    keys = [str(number) for number in range(100)]
    with http2(service_url) as connection:
        subscriptions = [
            begin(
                connection,
                "SubscribeToShard",
                {
                    "ConsumerARN": consumer["ConsumerARN"],
                    "ShardId": f"shardId-{number:012}",
                    "StartingPosition": {"Type": "TRIM_HORIZON"},
                },
            )
            for number in range(SHARDS)
        ]
        records = [{"Data": "aGVsbG8=", "PartitionKey": key} for key in keys]
        put = connection.answer(
            begin(connection, "PutRecords", {"StreamName": name, "Records": records})
        )
        while sum(len(records_of(connection, one)) for one in subscriptions) < len(keys):
            connection.receive()
        received = [records_of(connection, one) for one in subscriptions]
        connection.state.reset_stream(subscriptions[0], ErrorCodes.CANCEL)
        connection.ping()

        assert put.status == 200
        assert all(connection.answers[one].status == 200 for one in subscriptions)
        assert sorted(key for keys_of_one in received for key in keys_of_one) == sorted(keys)
        assert not any(connection.answers[one].is_over for one in subscriptions[1:])
    kinesis.delete_stream(StreamName=name, EnforceConsumerDeletion=True)
