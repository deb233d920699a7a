"""The test world of the dashboard: small, deterministic, with an example of every problem.

    queues    orders        no receivers, messages that have waited for three hours
              emails        busy: some ready, some in flight, some delayed; its webhook fails
              payments      FIFO; one group is parked behind a poison message
              invoices      dead letters of three reasons, with hostile bodies
              reminders     all delayed; quiet: empty
    streams   clicks        four shards, one of them split; `analytics` lags, `billing` is at the end
              readings      a key index, and hostile records
              ledger        archived; silent: empty
    topics    events        six routes: two to one queue, one paused, one to a missing stream
              quiet-events  no routes and no messages
    replays   done, running, failed, paused

The past is written with a manual clock. `crowd` is another namespace, with ten thousand queues.
"""

import asyncio
import json
import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec
import psycopg

from spark_worker.jobs.replay_sender import SendParts, TaskEnd, send_parts
from storage.bootstrap import Storage, open_storage
from storage.domain.clock import ManualClock, SystemClock
from storage.domain.errors import SignatureRejected
from storage.domain.groups.group import Commit, GroupKind, GroupSpec
from storage.domain.jobs import Job, JobKind
from storage.domain.limits import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS
from storage.domain.log.record_batch import Record
from storage.domain.mirrors.mirror import MirrorSpec
from storage.domain.mirrors.progress import ShardProgress
from storage.domain.names import (
    GroupName,
    MirrorName,
    QueueName,
    RouteName,
    SourceName,
    StreamName,
    TopicName,
    ViewName,
    WebhookName,
)
from storage.domain.queues.consumer import ConsumerProtocol, queue_consumer
from storage.domain.queues.message import NewMessage, SettleAction, Settlement
from storage.domain.queues.policies import PoisonPolicy
from storage.domain.queues.queue import QueueSpec, QueueType
from storage.domain.replays.replay import ReplayRequest, Target
from storage.domain.sources.source import SourceSpec, SourceTarget, WebhookProvider
from storage.domain.streams.start_at import StartAt
from storage.domain.streams.stream import StreamSpec
from storage.domain.topics.route import RouteSpec, RouteTarget
from storage.domain.topics.targets.spread import SpreadBy, SpreadMember
from storage.domain.topics.topic import NewPublication
from storage.domain.views.sink import ViewSink
from storage.domain.views.sources import SourceMode
from storage.domain.views.view import ViewInput, ViewQuery, ViewSpec
from storage.domain.webhooks import Payload, Source, SourceKind, WebhookSpec
from storage.settings import StorageSettings
from tests.archive_steps import archive_stream
from tests.conditions import PATIENCE_S, eventually
from tests.integration.topics.routing import RunningRouter
from tests.replay_steps import start_replay
from tests.view_worker import view_worker

AGO_MS = 3 * HOUR_MS
CROWD = "crowd"
CROWD_QUEUES = 10_000

ORDERS, EMAILS, PAYMENTS = QueueName("orders"), QueueName("emails"), QueueName("payments")
INVOICES, REMINDERS, QUIET = QueueName("invoices"), QueueName("reminders"), QueueName("quiet")
CLICKS, READINGS = StreamName("clicks"), StreamName("readings")
LEDGER, SILENT, COPIES = StreamName("ledger"), StreamName("silent"), StreamName("copies")
ANALYTICS, BILLING = GroupName("analytics"), GroupName("billing")
CRM = WebhookName("crm")
MAILER = queue_consumer("mailer", ConsumerProtocol.SQS, "192.0.2.7", b"<b>Boto3</b> ua/2.1")
GITHUB = SourceName("github")
PAGE_CLICKS, CLICK_CHANGES = ViewName("page-clicks"), StreamName("click-changes")
EVENTS, QUIET_EVENTS = TopicName("events"), TopicName("quiet-events")
BILLED, CUSTOMERS, AUDITED = QueueName("billed"), QueueName("customers"), StreamName("audited")
SUBJECTS = ("order.created", "order.paid", "refund.created", "order.created", "stock.changed")
ROUTES: tuple[tuple[str, RouteTarget, Any], ...] = (
    ("audit", RouteTarget(stream="audited"), None),
    ("billing", RouteTarget(queue="billed"), {"subject": "order.*"}),
    ("crm", RouteTarget(queue="customers"), {"subject": ["order.created", "refund.#"]}),
    (
        "large-orders",
        RouteTarget(queue="billed"),
        {"subject": "order.#", "filter": {"body": {"total": [{"numeric": [">", 100]}]}}},
    ),
    (
        "refunds",
        RouteTarget(queue="customers"),
        [{"subject": "refund.#"}, {"where": "body.refund"}],
    ),
    ("warehouse", RouteTarget(stream="no-such-stream"), {"subject": "#.changed"}),
    (
        "workers",
        RouteTarget(
            spread=(SpreadMember(queue="billed", weight=2), SpreadMember(queue="customers")),
            by=SpreadBy.KEY,
        ),
        {"subject": "order.shipped"},
    ),
)
REPLAYS = ("replay-done", "replay-running", "replay-failed", "replay-paused")

MARKER = "window.pwned=1"
"""Script that hostile bodies would run if they were taken for markup."""

HOSTILE: tuple[bytes, ...] = (
    f"<script>{MARKER}</script>".encode(),
    f'"><img src=x onerror="{MARKER}">'.encode(),
    f"'-({MARKER})-' {{{{7*7}}}} {{% raw %}} <svg/onload={MARKER}>".encode(),
    "safe \u202egnp.exe\u202c \u2066hidden\u2069 \ufeff".encode(),
    b"\xff\xfe\x00\x01 no text at all \x80\x81",
    json.dumps({"lines": [{"sku": f"sku-{n}", "note": "x" * 160} for n in range(1_000)]}).encode(),
    b"[" * 200 + b"]" * 200,
    json.dumps({"customer": "<b>Ada</b>", "total": 12.5, "paid": None}).encode(),
)
"""Hostile bodies: markup, bidirectional controls, invalid UTF-8, 200 KB of JSON, deep nesting."""


async def make_world(settings: StorageSettings) -> None:
    """Fill empty stores; takes two seconds, mostly for Parquet."""
    clock = ManualClock(SystemClock().now_ms() - AGO_MS)
    async with open_storage(settings, clock=clock) as storage:
        await _make_queues(storage)
        await _make_streams(storage)
        await _happen(storage, clock)
        await _make_replays(storage, settings.database_url)
    async with open_storage(settings) as storage:
        await _make_topics(storage)
        await archive_stream(storage, settings, LEDGER)
        await _make_webhook(storage, settings.database_url)
        await _make_source(storage)
        await _make_mirror(storage)
        await _make_view(storage, settings)
        await _set_about(storage)
        await storage.time_series.sample()


async def make_crowd(database_url: str) -> None:
    """Create the namespace with many empty queues."""
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute(
            "insert into namespaces (name, account_id, quotas, version, created_at_ms, changed_at_ms, over)"
            " values (%s, '999999999999', '{}', 1, 1, 1, false)",
            (CROWD,),
        )
        await connection.execute(
            "insert into queues select lpad(to_hex(n), 16, '0'), %s, 'queue-' || lpad(n::text, 5, '0'), %s, 1, 1, 1"
            " from generate_series(1, %s) n",
            (CROWD, json.dumps(msgspec.to_builtins(QueueSpec())), CROWD_QUEUES),
        )
        await connection.execute(
            "insert into logs (log_id, namespace, ceiling, log_epoch, epoch_start)"
            " select log_id, namespace, 0, 0, 0 from queues where namespace = %s",
            (CROWD,),
        )


async def _make_queues(storage: Storage) -> None:
    specs = {
        ORDERS: QueueSpec(tags={"team": "shop"}),
        EMAILS: QueueSpec(visibility_timeout_ms=11 * HOUR_MS),
        PAYMENTS: QueueSpec(type=QueueType.FIFO, attempts_max=1, on_poison=PoisonPolicy.PARK_GROUP),
        INVOICES: QueueSpec(attempts_max=1),
        REMINDERS: QueueSpec(delay_ms=11 * HOUR_MS),
        QUIET: QueueSpec(),
    }
    for name, spec in specs.items():
        await storage.catalog.put_queue(name, spec)


async def _make_streams(storage: Storage) -> None:
    await storage.catalog.put_stream(CLICKS, StreamSpec(shards=4))
    await storage.catalog.put_stream(READINGS, StreamSpec(key_index=True))
    await storage.catalog.put_stream(LEDGER, StreamSpec(shards=2))
    await storage.catalog.put_stream(SILENT, StreamSpec())
    await storage.catalog.put_stream(COPIES, StreamSpec(shards=2))
    await storage.groups.put(ANALYTICS, GroupSpec(stream="clicks", start=StartAt.EARLIEST))
    await storage.groups.put(BILLING, GroupSpec(stream="clicks", kind=GroupKind.SIMPLE))


async def _happen(storage: Storage, clock: ManualClock) -> None:
    """Three hours of activity, up to now."""
    chance = random.Random(8)
    await _send(storage, ORDERS, [b'{"order": %d}' % n for n in range(12)])
    await _put(storage, CLICKS, chance, 200)
    clock.advance(ms=HOUR_MS)
    await _send(storage, ORDERS, [b'{"order": %d}' % n for n in range(12, 40)])
    await _put(storage, CLICKS, chance, 150)
    await _split(storage)
    await _commit(storage, ANALYTICS)
    await _put(storage, CLICKS, chance, 250)
    await _put(storage, LEDGER, chance, 300)
    clock.advance(ms=HOUR_MS)
    await _kill(storage)
    await _park(storage)
    await _put(storage, READINGS, chance, 40)
    hostile = [
        Record(body, f"<i>key {n}</i>", (("<b>x</b>", "", b"<u>header</u>"),))
        for n, body in enumerate(HOSTILE)
    ]
    await storage.streams.append(READINGS, hostile)
    clock.advance(ms=HOUR_MS - MINUTE_MS)
    await _send(storage, EMAILS, [b'{"to": "user-%d"}' % n for n in range(60)])
    messages = await storage.queues.receive(EMAILS, messages_max=10)
    acks = [Settlement(message.receipt_handle, SettleAction.ACK) for message in messages]
    await storage.queues.settle(EMAILS, acks)
    clock.advance(ms=20 * SECOND_MS)
    await storage.queues.receive(EMAILS, messages_max=8, consumer=MAILER)
    await storage.queue_consumers.report()
    await _send(storage, REMINDERS, [b"call back %d" % n for n in range(9)])
    await _measure(storage, clock, chance)
    await _commit(storage, BILLING)


async def _measure(storage: Storage, clock: ManualClock, chance: random.Random) -> None:
    """The last half minute, sampled as by the sweeper."""
    for count in (5, 30, 12):
        await storage.time_series.sample()
        clock.advance(ms=10 * SECOND_MS)
        await _put(storage, CLICKS, chance, count)


async def _send(storage: Storage, name: QueueName, bodies: Sequence[bytes]) -> None:
    for first in range(0, len(bodies), 10):
        await storage.queues.send(name, [NewMessage(body) for body in bodies[first : first + 10]])


async def _put(storage: Storage, name: StreamName, chance: random.Random, count: int) -> None:
    records = [
        Record(
            json.dumps({"n": n, "page": f"/p/{chance.randrange(40)}"}).encode(),
            f"user-{chance.randrange(60)}",
            (("trace", "", b"%08x" % chance.randrange(2**32)),),
        )
        for n in range(count)
    ]
    for first in range(0, count, 50):
        await storage.streams.append(name, records[first : first + 50])


async def _split(storage: Storage) -> None:
    shard = (await storage.catalog.stream(CLICKS)).shard(1)
    middle = (shard.first_hash_key + shard.last_hash_key) // 2
    await storage.streams.resharder.split(CLICKS, shard.index, middle)


async def _commit(storage: Storage, name: GroupName) -> None:
    """Read everything and commit it."""
    kind = (await storage.groups.get(name)).spec.kind
    member = "" if kind is GroupKind.SIMPLE else "worker-1"
    while True:
        fetched = await storage.groups.fetcher.fetch(name, member)
        if not any(read.records or read.ended for read in fetched.reads):
            return
        generation = None if kind is GroupKind.SIMPLE else fetched.membership.generation
        await storage.groups.commit(
            name,
            [
                Commit(shard, offset, member, generation)
                for shard, offset in fetched.positions.items()
            ],
        )


async def _kill(storage: Storage) -> None:
    """Create dead letters of three reasons."""
    reasons = ("card declined", "timeout <b>after</b> 30 s", "no such customer")
    bodies = [*HOSTILE, *(b'{"invoice": %d}' % n for n in range(12))]
    for nth, body in enumerate(bodies):
        await storage.queues.send(INVOICES, [NewMessage(body, (("kind", "", b"<i>x</i>"),))])
        [message] = await storage.queues.receive(INVOICES, consumer=MAILER)
        verdict = Settlement(
            message.receipt_handle, SettleAction.REJECT, reason=reasons[nth % len(reasons)]
        )
        await storage.queues.settle(INVOICES, [verdict])
    await _send(storage, INVOICES, [b'{"invoice": 99}'])


async def _park(storage: Storage) -> None:
    """Create three message groups, one parked behind its first message."""
    sent = [
        NewMessage(b'{"amount": %d}' % n, group=f"account-{n % 3}", dedup_id=str(n))
        for n in range(9)
    ]
    await storage.queues.send(PAYMENTS, sent)
    [message] = await storage.queues.receive(PAYMENTS)
    verdict = Settlement(message.receipt_handle, SettleAction.REJECT, reason="account is closed")
    await storage.queues.settle(PAYMENTS, [verdict])


async def _make_replays(storage: Storage, database_url: str) -> None:
    """Create one replay in each state."""
    for name in REPLAYS:
        replay_request = ReplayRequest(stream="ledger", target=Target(stream="copies"))
        await storage.replays.submit("default", replay_request, name)
        if name == "replay-paused":
            await storage.replays.pause("default", name)
            continue
        job, _, _ = await start_replay(storage)
        if name == "replay-done":
            await _send_all(storage, job)
        elif name == "replay-running":
            await _advance(storage, job.job_id)
        elif name == "replay-failed":
            await _fail(database_url, job.job_id)


async def _send_all(storage: Storage, job: Job) -> None:
    """Send all parts of a replay whose shards may be sent in any order."""
    parts = tuple(part.part for part in await storage.replays.parts(job.job_id))
    assert await send_parts(storage, SendParts(job.claim, parts)) == TaskEnd()
    await storage.jobs.finish(job.claim)


async def _advance(storage: Storage, job_id: str) -> None:
    job = await storage.jobs.get(job_id)
    first, *_ = await storage.replays.parts(job_id)
    middle = (first.reach.first + first.reach.end) // 2
    read = middle - first.reach.first
    half = msgspec.structs.replace(
        first, position=middle, read=read, selected=read, sent=read, bytes=read * 40
    )
    await storage.replays.save(job.claim, [half])


async def _fail(database_url: str, job_id: str) -> None:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute(
            "update jobs set state = 'failed', failure = %s, ended_at_ms = created_at_ms + 90000 where job_id = %s",
            ("StreamNotFound: the target <copies> was deleted", job_id),
        )


async def _make_topics(storage: Storage) -> None:
    """Create a topic whose messages were routed, but for those that wait for a missing stream."""
    await storage.topics.put(EVENTS, StreamSpec(tags={"team": "shop"}))
    await storage.topics.put(QUIET_EVENTS, StreamSpec())
    for name, target, match in ROUTES:
        spec = RouteSpec(target=target, match=match, paused=name == "crm")
        await storage.topic_routes.put(RouteName(EVENTS, name), spec)
    for queue in (BILLED, CUSTOMERS):
        await storage.catalog.put_queue(queue, QueueSpec())
    await storage.catalog.put_stream(AUDITED, StreamSpec())
    large = {"filter": {"body": {"total": [{"numeric": [">", 100]}]}}}
    tasks = RouteSpec(target=RouteTarget(queue="customers"), match=large)
    await storage.topic_routes.put(RouteName(AUDITED.topic, "tasks"), tasks)
    messages = [
        NewPublication(b'{"id": %d, "total": %d}' % (n, 40 * n), subject, f"customer-{n % 3}")
        for n, subject in enumerate(SUBJECTS)
    ]
    hostile = [NewPublication(body, "order.hostile", "<i>key</i>") for body in HOSTILE]
    await storage.topics.publish(EVENTS, [*messages, *hostile])
    async with RunningRouter(storage), asyncio.timeout(PATIENCE_S):
        while True:
            report = await storage.topic_reports.progress(RouteName(EVENTS, "audit"))
            missing = await storage.topic_reports.progress(RouteName(EVENTS, "warehouse"))
            if not report.lag_messages and missing.route.failure:
                return
            await asyncio.sleep(0.05)


async def _make_mirror(storage: Storage) -> None:
    """Create a mirror of one stream, which is a little behind in one shard and fails in the other."""
    spec = MirrorSpec(url="https://eu.example.com", streams=("eu.*",))
    mirror = (await storage.mirrors.put(MirrorName("eu"), spec)).definition
    shard = ShardProgress(
        stream="eu.orders", origin_id="o", shard=0, target_id="t", next_offset=1_200, tip=1_207
    )
    failing = msgspec.structs.replace(
        shard, shard=1, failure="The origin answered 503: no reason given"
    )
    await storage.mirrors.report(mirror, [shard, failing], "")


async def _make_view(storage: Storage, settings: StorageSettings) -> None:
    """Create a view over all records of the stream `clicks`, with two sinks."""
    sql = "select page, count(*) as clicks from c group by page"
    clicks = ViewInput(stream="clicks", columns="page string")
    query = ViewQuery(sql=sql, inputs={"c": clicks}, sources=SourceMode.RANGE)
    async with view_worker(settings):
        await storage.catalog.put_stream(CLICK_CHANGES, StreamSpec())
        alert = ViewSink(queue=ORDERS.name, when="clicks > 1000000", once_per_key=True)
        sinks = (ViewSink(stream=CLICK_CHANGES.name), alert)
        await storage.views.put(PAGE_CLICKS, ViewSpec(query=query, keep_ms=30 * DAY_MS, into=sinks))

        async def has_sent() -> bool:
            return (await storage.views.status(PAGE_CLICKS)).sinks[0].sent > 0

        await eventually(has_sent, True)


async def _make_source(storage: Storage) -> None:
    """Create a source that has accepted an event, and rejected two requests."""
    spec = SourceSpec(
        provider=WebhookProvider.GITHUB,
        secrets=("a secret of the provider",),
        headers=("X-GitHub-Event",),
        into=SourceTarget(stream="clicks", key="/sender/login"),
    )
    source = (await storage.sources.put(GITHUB, spec)).definition
    headers, body = storage.source_receiver.test_request(source)
    await storage.source_receiver.receive(source, headers, body)
    await storage.source_receiver.receive(source, headers, body)
    await storage.source_transfer.complete(source)
    await _commit(storage, BILLING)
    for changes in ({"x-hub-signature-256": "sha256=" + "0" * 64}, {"x-hub-signature-256": "x"}):
        with suppress(SignatureRejected):
            await storage.source_receiver.receive(source, {**headers, **changes}, body)


async def _make_webhook(storage: Storage, database_url: str) -> None:
    """Create a webhook that has never delivered anything."""
    source = Source(SourceKind.QUEUE, "emails")
    await storage.webhooks.put(CRM, WebhookSpec(source=source, url="http://127.0.0.1:9/hook"))
    now_ms = SystemClock().now_ms()
    kept = [
        {
            "outcome": "connection",
            "at_ms": now_ms - MINUTE_MS,
            "duration_ms": 12,
            "error": "connection refused",
            "response": HOSTILE[0].decode(),
        }
    ]
    payload = msgspec.msgpack.encode(Payload(HOSTILE[1], "text/plain", ()))
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        for nth in range(12):
            await connection.execute(
                "insert into webhook_deliveries select webhook_id, %s, %s, 1, %s, %s, %s, null,"
                " 9000000000000000, null, %s, %s, '', '', %s from webhooks where name = %s",
                (
                    f"event-{nth:02}",
                    "failed" if nth % 3 else "retrying",
                    json.dumps(kept),
                    now_ms - nth * MINUTE_MS,
                    now_ms - nth * MINUTE_MS,
                    nth,
                    now_ms - nth * MINUTE_MS,
                    payload,
                    CRM.name,
                ),
            )


async def _set_about(storage: Storage) -> None:
    """Submit a job that stays queued, as without a worker."""
    await storage.archive_admin.flush(CLICKS)
    claimed = await storage.jobs.list(kind=JobKind.ARCHIVE)
    assert claimed
