"""The Kinesis protocol through an unmodified boto3: PutRecords and GetRecords."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
)

from tests.aws_clients import aws_client
from tests.chaos.callers import ANSWER_S, NOT_DONE, Caller, Told, is_unknown
from tests.chaos.checker import UNANSWERED
from tests.chaos.history import Kind, Operation, Outcome, Seen

NEVER_SENT = (EndpointConnectionError, ConnectTimeoutError)
OFFSET_BIT = 80
OFFSET_BITS = 64
LIMIT = 1000


def boto3_client(url: str) -> Any:
    """Create a client shared by all threads; creation takes half a second."""
    return aws_client("kinesis", url, connect_timeout=ANSWER_S, read_timeout=ANSWER_S)


class Kinesis:
    """A client without retries, because retries would duplicate records."""

    def __init__(self, caller: Caller, client: Any, threads: ThreadPoolExecutor) -> None:
        self.caller = caller
        self._threads = threads
        self._client = client

    async def put(self, stream: str, values: tuple[str, ...], keys: tuple[str, ...]) -> Operation:
        """PutRecords; recorded as up to three operations: succeeded, failed and unknown items."""
        records = [
            {"Data": value.encode(), "PartitionKey": key}
            for value, key in zip(values, keys, strict=True)
        ]
        invoked = self.caller.history.now()
        outcome, status, code, response = await self._ask(
            lambda: self._client.put_records(StreamName=stream, Records=records)
        )
        if outcome is not Outcome.OK:
            return self.caller.note(
                Kind.APPEND, stream, invoked, outcome, status, code, Told(), values=values
            )
        keyed = dict(zip(values, keys, strict=True))
        items = [*zip(values, response["Records"], strict=True)]
        for way in (Outcome.FAIL, Outcome.UNKNOWN):
            chosen_items = tuple(value for value, item in items if _item_outcome(item) is way)
            if chosen_items:
                self.caller.note(
                    Kind.APPEND, stream, invoked, way, status, "", Told(), values=chosen_items
                )
        placed = [(value, item) for value, item in items if _item_outcome(item) is Outcome.OK]
        return self.caller.note(
            Kind.APPEND,
            stream,
            invoked,
            Outcome.OK,
            status,
            "",
            Told(
                tuple(_place(value, item["ShardId"], item, keyed[value]) for value, item in placed)
            ),
            values=tuple(value for value, _ in placed),
        )

    async def get(
        self, stream: str, shard: int, iterator: str, first: int
    ) -> tuple[Operation, Any]:
        """GetRecords from an iterator at offset `first`; returns operation and response."""
        invoked = self.caller.history.now()
        outcome, status, code, response = await self._ask(
            lambda: self._client.get_records(ShardIterator=iterator, Limit=LIMIT)
        )
        seen: tuple[Seen, ...] = ()
        if outcome is Outcome.OK:
            name = shard_id(shard)
            seen = tuple(
                _place(record["Data"].decode(), name, record) for record in response["Records"]
            )
        operation = self.caller.note(
            Kind.READ, stream, invoked, outcome, status, code, Told(seen), first=first
        )
        return operation, response

    async def iterator(self, stream: str, shard: int, after: str) -> str | None:
        """Return an iterator after a sequence number or at the start; None if unavailable."""
        place = (
            {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber": after}
            if after
            else {"ShardIteratorType": "TRIM_HORIZON"}
        )
        outcome, _, _, response = await self._ask(
            lambda: self._client.get_shard_iterator(
                StreamName=stream, ShardId=shard_id(shard), **place
            )
        )
        return str(response["ShardIterator"]) if outcome is Outcome.OK else None

    async def shards(self, stream: str) -> list[int]:
        """Return every shard, open or closed; empty if unavailable."""
        outcome, _, _, response = await self._ask(
            lambda: self._client.list_shards(StreamName=stream)
        )
        return (
            [shard_of(shard["ShardId"]) for shard in response["Shards"]]
            if outcome is Outcome.OK
            else []
        )

    async def _ask(self, call: Callable[[], Any]) -> tuple[Outcome, int, str, Any]:
        """Return outcome, status, code and response."""
        loop = asyncio.get_running_loop()
        try:
            told = await loop.run_in_executor(self._threads, call)
        except NEVER_SENT:
            return Outcome.FAIL, 0, "", {}
        except ClientError as error:
            return _refused(error)
        except BotoCoreError:
            return Outcome.UNKNOWN, 0, "", {}
        return Outcome.OK, told["ResponseMetadata"]["HTTPStatusCode"], "", told


def _refused(error: ClientError) -> tuple[Outcome, int, str, Any]:
    status = int(error.response["ResponseMetadata"]["HTTPStatusCode"])
    printed_error = error.response["Error"]
    code = UNANSWERED if is_unknown(printed_error.get("Message", "")) else printed_error["Code"]
    refused = status < 500 or status == NOT_DONE
    return (Outcome.FAIL if refused else Outcome.UNKNOWN), status, code, {}


def _item_outcome(item: Any) -> Outcome:
    """Classify an item: InternalFailure may mean an unknown outcome."""
    if "ErrorCode" not in item:
        return Outcome.OK
    return Outcome.UNKNOWN if item["ErrorCode"] == "InternalFailure" else Outcome.FAIL


def _place(value: str, shard: str, told: Any, key: str = "") -> Seen:
    number = told["SequenceNumber"]
    return Seen(
        value=value, shard=shard_of(shard), offset=offset_of(number), group=key, number=number
    )


def offset_of(number: str) -> int:
    """The offset in a sequence number, as in docs/reference/kinesis.md."""
    return (int(number) >> OFFSET_BIT) & ((1 << OFFSET_BITS) - 1)


def shard_id(shard: int) -> str:
    """The Kinesis name of a shard."""
    return f"shardId-{shard:012d}"


def shard_of(name: str) -> int:
    """The shard of a Kinesis name."""
    return int(name.rpartition("-")[2])
