"""Rows of the Kinesis protocol against R, in JSON, as SDKs use it."""

import base64
import json
from collections.abc import Collection
from itertools import count
from typing import Any

import httpx

from tests.bench import payloads
from tests.bench.load import wrk
from tests.bench.plan import KINESIS_GET, KINESIS_PUT_1, KINESIS_PUT_16, Plan
from tests.bench.ratios import Measured, Row
from tests.bench.rounds import Contestant, interleave
from tests.bench.rows_records import READ_CALLS, Records
from tests.bench.servers import House
from tests.bench.wire import MSGPACK, REPLY_S_MAX, Answer, call, good, post_all

KIND = "application/x-amz-json-1.1"
TARGET = "Kinesis_20131202"
READ = "bench-kinesis-read"


def measure(house: House, plan: Plan, wanted: Collection[Row]) -> list[Measured]:
    """PutRecords and GetRecords, against R."""
    door = ApiProtocol(house, plan)
    contestants = [
        Contestant(KINESIS_PUT_1, lambda: door.put(1)),
        Contestant(KINESIS_PUT_16, lambda: door.put(16)),
        Contestant(KINESIS_GET, door.get),
    ]
    chosen = [one for one in contestants if one.row in wanted]
    if KINESIS_GET in wanted:
        door.fill()
    return interleave(plan.rounds, Records(house, plan).reference, chosen)


class ApiProtocol:
    """Each put uses a new stream, deleted afterwards, so that all rounds start alike."""

    def __init__(self, house: House, plan: Plan) -> None:
        self._house = house
        self._seconds = plan.seconds
        self._numbers = count()

    def put(self, shards: int) -> float:
        """Records per second."""
        port, name = self._house.api.port, f"bench-kinesis-{next(self._numbers)}"
        call(port, "PUT", f"/v1/streams/{name}", {"shards": shards})
        data = base64.b64encode(payloads.BODY).decode()
        records = [{"Data": data, "PartitionKey": f"key-{nth}"} for nth in range(payloads.RECORDS)]
        body = json.dumps({"StreamName": name, "Records": records})
        bodies = self._house.file("kinesis-put", f"{body}\n".encode())
        load = wrk(port, "lines.lua", KIND, f"{TARGET}.PutRecords", bodies, seconds=self._seconds)
        call(port, "DELETE", f"/v1/streams/{name}")
        return load.rate * payloads.RECORDS

    def fill(self) -> None:
        """Write the records to be read."""
        port, path = self._house.api.port, f"/v1/streams/{READ}"
        call(port, "PUT", path, {"shards": 1})
        post_all(port, [(f"{path}/records", payloads.records(), MSGPACK)] * (READ_CALLS + 1))

    def get(self) -> float:
        """Records per second; each round has its own iterators, which expire after five minutes."""
        lines = "".join(f"{json.dumps(read)}\n" for read in self._reads())
        bodies = self._house.file("kinesis-get", lines.encode())
        port = self._house.api.port
        load = wrk(port, "lines.lua", KIND, f"{TARGET}.GetRecords", bodies, seconds=self._seconds)
        return load.rate * payloads.RECORDS

    def _reads(self) -> list[dict[str, Any]]:
        """Different reads of RECORDS records each."""
        shard = {"ShardId": "shardId-000000000000", "ShardIteratorType": "TRIM_HORIZON"}
        told = self._call("GetShardIterator", {"StreamName": READ, **shard})
        reads = []
        for _ in range(READ_CALLS):
            reads.append({"ShardIterator": told["ShardIterator"], "Limit": payloads.RECORDS})
            told = {"ShardIterator": self._call("GetRecords", reads[-1])["NextShardIterator"]}
        return reads

    def _call(self, operation: str, asked: dict[str, Any]) -> Any:
        headers = {"Content-Type": KIND, "X-Amz-Target": f"{TARGET}.{operation}"}
        url = f"http://127.0.0.1:{self._house.api.port}/"
        answer = httpx.post(url, content=json.dumps(asked), headers=headers, timeout=REPLY_S_MAX)
        return json.loads(good(Answer(answer.status_code, answer.content), operation))
