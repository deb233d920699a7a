"""Cost of authentication and quotas: the same load in open mode and with credentials.

For signed batches, the cost beyond the digest of the body (ADR 0050).
Both are fresh processes on the same stores. Callers of the guarded one have a namespace with rates
for namespace, key and resources, all far above the load.
"""

import asyncio
import base64
import hashlib
import json
import timeit
from collections.abc import Callable, Collection, Mapping
from functools import partial
from statistics import median

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from storage.access.secret_box import new_key
from storage.bootstrap import Storage, open_storage
from storage.domain.access.credentials import CredentialKind, CredentialRequest, NewSecret, Rights
from storage.domain.access.permissions import LOCAL_ADMINISTRATOR, Principal, Role
from storage.domain.names import DEFAULT_NAMESPACE, QueueName, StreamName
from storage.domain.queues.message import NewMessage
from storage.domain.queues.queue import QueueSpec
from storage.domain.quotas import Quotas, Rates, ResourceRates
from storage.domain.streams.stream import StreamSpec
from tests.bench import payloads
from tests.bench.load import wrk
from tests.bench.plan import KEYS_SEND, KEYS_WORK, SIGV4_BATCH, SIGV4_SEND, Plan
from tests.bench.ratios import Measured, Row, Unmeasurable
from tests.bench.rounds import Contestant, interleave
from tests.bench.rows_http import BATCH, FIRST_GUESS, SPARE
from tests.bench.servers import House, Served
from tests.bench.wire import JSON

TENANT = "bench-tenant"
QUEUE, STREAM = "bench-keys", "bench-keys"
CLOSER = 3
"""Differences of two processes are small compared to drift of the machine: short rounds."""
PLENTY = Rates(calls_per_second=1e6, messages_per_second=1e7, bytes_per_second=1e11)
QUOTAS = Quotas(
    rates=PLENTY, resources=(ResourceRates("queue/*", PLENTY), ResourceRates("stream/*", PLENTY))
)
SQS_KIND, KINESIS_KIND = "application/x-amz-json-1.0", "application/x-amz-json-1.1"


def measure(house: House, plan: Plan, wanted: Collection[Row]) -> list[Measured]:
    """Each row against the same load in open mode."""
    keys = new_key()
    settings = house.storage.model_copy(update={"secret_keys": (keys,)})
    with (
        asyncio.Runner() as runner,
        house.fresh_api() as open_,
        house.guarded_api(keys) as secured_service,
    ):
        opening = open_storage(settings)
        storage = runner.run(opening.__aenter__())
        try:
            key, pair = runner.run(_prepare(storage))
            rows = Rows(house, max(1, plan.seconds // 2), storage, runner, key, pair)
            loads: dict[Row, Callable[[Served, bool], float]] = {
                KEYS_SEND: rows.send,
                KEYS_WORK: rows.work,
                SIGV4_SEND: rows.sqs_send,
                SIGV4_BATCH: rows.put_records,
            }
            references = {SIGV4_BATCH: partial(rows.put_records_and_digest, open_)}
            return [
                one
                for row, load in loads.items()
                if row in wanted
                for one in interleave(
                    CLOSER * plan.rounds,
                    references.get(row, partial(load, open_, False)),
                    [Contestant(row, partial(load, secured_service, True), rows.notes_of(row))],
                )
            ]
        finally:
            runner.run(opening.__aexit__(None, None, None))


async def _prepare(storage: Storage) -> tuple[NewSecret, NewSecret]:
    """The tenant with quotas, resources in both namespaces, and credentials of the tenant."""
    await storage.namespaces.put(TENANT, QUOTAS)
    for namespace in (DEFAULT_NAMESPACE, TENANT):
        await storage.catalog.put_queue(QueueName(QUEUE, namespace), QueueSpec())
        await storage.catalog.put_stream(StreamName(STREAM, namespace), StreamSpec(shards=1))
    by = Principal("bench", TENANT, LOCAL_ADMINISTRATOR.policy)
    rights = Rights(roles=(Role.ADMIN,), rates=PLENTY)
    made = [
        await storage.credentials.create(
            by, CredentialRequest(name="bench", rights=rights, kind=kind, all_namespaces=False)
        )
        for kind in (CredentialKind.KEY, CredentialKind.PAIR)
    ]
    return made[0][1], made[1][1]


class Rows:
    """The loads, for a process with or without authentication."""

    def __init__(
        self,
        house: House,
        seconds: int,
        storage: Storage,
        runner: asyncio.Runner,
        key: NewSecret,
        pair: NewSecret,
    ) -> None:
        self._house = house
        self._seconds = seconds
        self._storage = storage
        self._runner = runner
        self._bearer = {"Authorization": f"Bearer {key.token}"}
        self._signer = Credentials(pair.id, pair.token)
        self._wanted = FIRST_GUESS * seconds
        self._message = payloads.message_as_json()
        self._digests: list[str] = []
        self._sends = house.file("keys-message.json", self._message)

    def send(self, served: Served, secured_service: bool) -> float:
        """Sends per second over REST."""
        words = ("POST", JSON, JSON, self._sends, f"/v1/queues/{QUEUE}/messages", "1", "0")
        headers = self._bearer if secured_service else {}
        rate = wrk(served.port, "fixed.lua", *words, seconds=self._seconds, headers=headers).rate
        self._purge(secured_service)
        return rate

    def work(self, served: Served, secured_service: bool) -> float:
        """Calls per second; a round that empties the queue is repeated with more messages."""
        headers = self._bearer if secured_service else {}
        for _ in range(3):
            self._fill(secured_service)
            load = wrk(
                served.port,
                "receive_settle.lua",
                f"/v1/queues/{QUEUE}",
                seconds=self._seconds,
                headers=headers,
            )
            self._wanted = round(max(self._wanted, SPARE * load.delivered))
            if not load.empty:
                return load.rate
        raise Unmeasurable("the queue ran dry in every attempt")

    def sqs_send(self, served: Served, secured_service: bool) -> float:
        """Sends per second over SQS."""
        account = self._storage.namespaces.table[_namespace(secured_service)].account_id
        url = f"http://127.0.0.1:{served.port}/{account}/{QUEUE}"
        body = json.dumps({"QueueUrl": url, "MessageBody": payloads.BODY.decode()}).encode()
        rate = self._call(served, "sqs", SQS_KIND, "AmazonSQS.SendMessage", body)
        self._purge(secured_service)
        return rate

    def put_records(self, served: Served, secured_service: bool) -> float:
        """Records per second over Kinesis."""
        body = self._put_records_body()
        target = "Kinesis_20131202.PutRecords"
        rate = self._call(served, "kinesis", KINESIS_KIND, target, body)
        self._runner.run(self._empty_stream(_namespace(secured_service)))
        return rate * payloads.RECORDS

    def put_records_and_digest(self, served: Served) -> float:
        """Records per second in open mode, plus the SHA-256 of each body: ADR 0050."""
        rate = self.put_records(served, False)
        digest_s = _digest_seconds(self._put_records_body())
        self._digests[:] = [
            f"the SHA-256 of a call's body took {digest_s * 1e6:.0f} µs; without it open mode had "
            f"{rate:,.0f} records/s in the last round"
        ]
        return 1 / (1 / rate + digest_s / payloads.RECORDS)

    def notes_of(self, row: Row) -> list[str]:
        """Notes about the reference, once measured."""
        return self._digests if row is SIGV4_BATCH else []

    def _put_records_body(self) -> bytes:
        data = base64.b64encode(payloads.BODY).decode()
        records = [{"Data": data, "PartitionKey": f"key-{nth}"} for nth in range(payloads.RECORDS)]
        return json.dumps({"StreamName": STREAM, "Records": records}).encode()

    def _call(self, served: Served, service: str, kind: str, target: str, body: bytes) -> float:
        """Signed calls per second; clients also sign in open mode, where nothing is verified."""
        file = self._house.file(f"keys-{service}.json", body)
        words = ("POST", kind, "*/*", file, "/", "1", "0", target)
        headers = self._signed(served, service, kind, target, body)
        return wrk(served.port, "fixed.lua", *words, seconds=self._seconds, headers=headers).rate

    def _signed(
        self, served: Served, service: str, kind: str, target: str, body: bytes
    ) -> Mapping[str, str]:
        """Headers of one signature, valid for five minutes; each call is verified."""
        request = AWSRequest(
            "POST",
            f"http://127.0.0.1:{served.port}/",
            headers={"Content-Type": kind, "X-Amz-Target": target},
            data=body,
        )
        SigV4Auth(self._signer, service, "us-east-1").add_auth(request)
        return {
            name: value
            for name, value in request.headers.items()
            if name.startswith(("X-Amz-D", "A"))
        }

    def _fill(self, secured_service: bool) -> None:
        self._purge(secured_service)
        self._runner.run(self._send_many(_namespace(secured_service)))
        self._house.wait_for_freeing()

    async def _send_many(self, namespace: str) -> None:
        batch = [NewMessage(payloads.BODY)] * BATCH
        queue = QueueName(QUEUE, namespace)
        for _ in range(-(-self._wanted // BATCH)):
            await self._storage.queues.send(queue, batch)

    def _purge(self, secured_service: bool) -> None:
        self._runner.run(self._storage.queues.purge(QueueName(QUEUE, _namespace(secured_service))))
        self._house.wait_for_freeing()

    async def _empty_stream(self, namespace: str) -> None:
        name = StreamName(STREAM, namespace)
        [state] = await self._storage.record_reader.shards(name)
        start = 0
        while start < state.next:
            start = await self._storage.streams.truncate(name, 0, state.next)


def _namespace(secured_service: bool) -> str:
    return TENANT if secured_service else DEFAULT_NAMESPACE


def _digest_seconds(body: bytes) -> float:
    """The median time of the SHA-256 of a body."""
    return (
        median(timeit.repeat(lambda: hashlib.sha256(body).hexdigest(), number=10, repeat=50)) / 10
    )
