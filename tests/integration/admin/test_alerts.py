"""Alerts from real samples: their kinds, times and mutes, in every process."""

import pytest

from api.admin.alerts.engine import AlertList, find_alerts
from api.admin.alerts.inputs import read_inputs
from storage.bootstrap import open_storage
from storage.domain import limits
from storage.domain.access.credentials import NewSecret, Rights
from storage.domain.access.permissions import (
    LOCAL_ADMINISTRATOR,
    Effect,
    Grant,
    Policy,
    Principal,
)
from storage.domain.alerts.kinds import AlertKind, AlertSubject
from storage.domain.errors import QueueFull
from storage.domain.groups.group import GroupSpec
from storage.domain.limits import Limits
from storage.domain.log.record_batch import Record
from storage.domain.names import GroupName, QueueName, StreamName
from storage.domain.queues.message import NewMessage, SettleAction, Settlement
from storage.domain.queues.policies import Overflow
from storage.domain.queues.queue import QueueSpec
from storage.domain.streams.stream import StreamSpec
from tests.secured_service import SecuredService, running_secured_service
from tests.websocket_client import running_server

pytestmark = pytest.mark.one_store

ORDERS, MAILS = QueueName("orders"), QueueName("mails")
STEP_MS = limits.SERIES_STEP_MS


async def send(storage, queue, count):
    await storage.queues.send(queue, [NewMessage(b"x")] * count)


async def tick(storage, clock, steps=1):
    for _ in range(steps):
        clock.advance(ms=STEP_MS)
        await storage.time_series.sample()


async def alerts_of(storage, clock, principal=LOCAL_ADMINISTRATOR) -> AlertList:
    """Return the alerts as the overview shows them, without those of the deployment."""
    inputs = await read_inputs(storage, principal, {}, clock.now_ms())
    mutes = await storage.alert_mutes.list(principal.namespace)
    hidden = {AlertKind.SWEEPER_MISSING}
    alerts = find_alerts(inputs, mutes)
    return alerts._replace(groups=[one for one in alerts.groups if one.kind not in hidden])


def subjects(alerts):
    groups = (*alerts.groups, *alerts.quiet)
    return [(one.kind, alert.subject.object) for one in groups for alert in one.alerts]


async def test_queue_that_rejects_sends_is_full(engines, clock):
    for queue, overflow in ((ORDERS, Overflow.REJECT), (MAILS, Overflow.DROP_OLDEST)):
        await engines.catalog.put_queue(queue, QueueSpec(messages_max=2, overflow=overflow))
        await send(engines, queue, 2)
    await tick(engines, clock, 2)

    with pytest.raises(QueueFull):
        await send(engines, ORDERS, 1)

    assert subjects(await alerts_of(engines, clock)) == [(AlertKind.QUEUE_FULL, "orders")]


async def test_queue_that_is_full_by_bytes_is_full(engines, clock):
    await engines.catalog.put_queue(ORDERS, QueueSpec(bytes_max=limits.KIB))
    while True:
        try:
            await send(engines, ORDERS, 1)
        except QueueFull:
            break
    await tick(engines, clock, 2)

    assert subjects(await alerts_of(engines, clock)) == [(AlertKind.QUEUE_FULL, "orders")]


async def test_unread_records_are_losing_when_retention_takes_them(engines, clock):
    stream, group = StreamName("clicks"), GroupName("readers")
    await engines.catalog.put_stream(stream, StreamSpec(retention_records=60))
    await engines.groups.put(group, GroupSpec(stream="clicks"))
    for _ in range(limits.MINUTE_MS * 6 // STEP_MS):
        await engines.streams.append(stream, [Record(b"x")])
        await tick(engines, clock)

    alerts = await alerts_of(engines, clock)

    assert subjects(alerts) == [(AlertKind.GROUP_EXPIRING, "readers")]
    assert alerts.groups[0].waiting == 36


async def test_start_is_the_same_in_another_process_and_after_restart(engines, settings, clock):
    await engines.catalog.put_queue(ORDERS, QueueSpec(attempts_max=1))
    await tick(engines, clock, 3)
    await send(engines, ORDERS, 1)
    [message] = await engines.queues.receive(ORDERS)
    await engines.queues.settle(
        ORDERS, [Settlement(message.receipt_handle, SettleAction.REJECT, reason="late")]
    )
    died_at_ms = clock.now_ms()
    await tick(engines, clock, 30)

    starts = [(await alerts_of(engines, clock)).groups[0].alerts[0].start]
    for _ in range(2):
        async with open_storage(settings, clock=clock) as other:
            starts.append((await alerts_of(other, clock)).groups[0].alerts[0].start)

    assert starts[0] is not None
    assert starts[0] == starts[1] == starts[2]
    assert 0 <= starts[0].at_ms - died_at_ms <= STEP_MS


async def test_growing_queue_is_before_a_larger_one(engines, clock):
    for queue in (ORDERS, MAILS):
        await engines.catalog.put_queue(queue, QueueSpec())
    await send(engines, MAILS, 300)
    await tick(engines, clock, 2)
    for _ in range(limits.MINUTE_MS * 6 // STEP_MS):
        await send(engines, ORDERS, 5)
        await tick(engines, clock)

    alerts = await alerts_of(engines, clock)

    assert [name for _, name in subjects(alerts)] == ["orders", "mails"]
    assert alerts.groups[0].alerts[0].finding.growth == pytest.approx(30, rel=0.1)


async def test_viewer_has_alerts_of_visible_objects_only(engines, clock):
    for queue in (ORDERS, MAILS):
        await engines.catalog.put_queue(queue, QueueSpec(messages_max=1))
        await send(engines, queue, 1)
    await tick(engines, clock, 2)
    grant = Grant(Effect.ALLOW, ("queue:list",), ("ma*",))
    viewer = Principal("ada", policy=Policy((grant,)))

    assert subjects(await alerts_of(engines, clock, viewer)) == [(AlertKind.QUEUE_FULL, "mails")]


async def test_deleted_queue_does_not_hide_others(engines, clock):
    for queue in (ORDERS, MAILS):
        await engines.catalog.put_queue(queue, QueueSpec(messages_max=1))
        await send(engines, queue, 1)
    await tick(engines, clock, 2)

    await engines.catalog.delete_queue(ORDERS)

    assert (AlertKind.QUEUE_FULL, "mails") in subjects(await alerts_of(engines, clock))


async def test_mute_of_one_process_is_shown_by_another(settings):
    """Overview pages of two API processes over the same stores."""
    async with running_secured_service(settings.redis_url, settings.database_url) as service:
        await service.storage.catalog.put_queue(QueueName("full"), QueueSpec(messages_max=1))
        await send(service.storage, QueueName("full"), 1)
        await service.storage.time_series.sample()
        key = await service.key()
        path, hour = "/v1/alerts/queue_full/full/mute", {"duration_seconds": 3600}
        async with open_storage(settings) as storage, running_server(storage, Limits()) as other:
            before = await overview(service, other.url)
            await service.request("PUT", path, key, json=hour)
            muted = await overview(service, other.url)
            await service.request("DELETE", path, key)
            after = await overview(service, other.url)

    assert ["full is full" in page for page in (before, muted, after)] == [True, False, True]
    assert ["1 muted" in page for page in (before, muted, after)] == [False, True, False]


async def test_caller_who_may_not_list_mutes_has_all_alerts(settings):
    """Otherwise alerts were hidden without a sign."""
    async with running_secured_service(settings.redis_url, settings.database_url) as service:
        full = QueueName("full")
        await service.storage.catalog.put_queue(full, QueueSpec(messages_max=1))
        await send(service.storage, full, 1)
        await service.storage.time_series.sample()
        subject = AlertSubject(AlertKind.QUEUE_FULL, "full")
        await service.storage.alert_mutes.mute("default", subject, limits.HOUR_MS, by="ada")
        keys = [
            await service.key(Rights(grants=(Grant(Effect.ALLOW, actions),)))
            for actions in (("queue:list",), ("queue:list", "alert:list"))
        ]

        pages = [await page_of(service, key) for key in keys]

    assert ["full is full" in page for page in pages] == [True, False]
    assert ["1 muted" in page for page in pages] == [False, True]
    assert not any("Unmute" in page for page in pages)


async def page_of(service: SecuredService, key: NewSecret) -> str:
    made = await service.request("POST", "/v1/sessions", json={"api_key": key.token})
    cookie = {"cookie": made.headers["set-cookie"].split(";")[0]}
    page: str = (await service.request("GET", "/ui", headers=cookie)).text
    return page


async def overview(service: SecuredService, url: str) -> str:
    page: str = (await service.request("GET", f"{url}/ui")).text
    return page
