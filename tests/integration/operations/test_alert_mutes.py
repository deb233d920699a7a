"""Mutes of alerts: the same for every process, bounded, audited, by permission."""

import pytest

from storage.bootstrap import open_storage
from storage.domain import limits
from storage.domain.access.audit import AuditFilter
from storage.domain.access.credentials import Rights
from storage.domain.access.permissions import Effect, Grant, Role
from storage.domain.alerts.kinds import AlertKind, AlertSubject
from storage.domain.errors import QuotaReached, ValidationFailed
from storage.domain.quotas import NO_QUOTAS
from tests.secured_service import running_secured_service

pytestmark = pytest.mark.one_store

HOME = "default"
DEAD = AlertSubject(AlertKind.DEAD_LETTERS, "orders")
STALLED = AlertSubject(AlertKind.QUEUE_STALLED, "orders")
PATH = "/v1/alerts/dead_letters/orders/mute"


@pytest.fixture
async def service(redis_url, database_url):
    async with running_secured_service(redis_url, database_url) as service:
        yield service


async def subjects(storage):
    return [mute.subject for mute in await storage.alert_mutes.list(HOME)]


async def test_mute_is_seen_by_all_processes_and_after_restart(engines, settings, clock):
    await engines.alert_mutes.mute(HOME, DEAD, limits.HOUR_MS, by="ada")
    for _ in range(2):
        async with open_storage(settings, clock=clock) as other:
            [mute] = await other.alert_mutes.list(HOME)

            assert mute.subject == DEAD
            assert (mute.muted_by, mute.until_ms) == ("ada", clock.now_ms() + limits.HOUR_MS)
    async with open_storage(settings, clock=clock) as other:
        await other.alert_mutes.unmute(HOME, DEAD)

    assert await subjects(engines) == []


async def test_mute_ends_by_itself(engines, clock):
    await engines.alert_mutes.mute(HOME, DEAD, limits.HOUR_MS, by="ada")
    await engines.alert_mutes.mute(HOME, STALLED, limits.DAY_MS, by="ada")

    clock.advance(ms=limits.HOUR_MS)

    assert await subjects(engines) == [STALLED]


async def test_mute_replaces_earlier_one(engines, clock):
    await engines.alert_mutes.mute(HOME, DEAD, limits.DAY_MS, by="ada")
    await engines.alert_mutes.mute(HOME, DEAD, limits.HOUR_MS, by="bob")

    [mute] = await engines.alert_mutes.list(HOME)
    assert (mute.muted_by, mute.until_ms - clock.now_ms()) == ("bob", limits.HOUR_MS)


@pytest.mark.parametrize(
    ("name", "duration_ms"),
    [("a/b", limits.HOUR_MS), ("", limits.HOUR_MS), ("a", 0), ("a", limits.ALERT_MUTE_MS_MAX + 1)],
)
async def test_invalid_mute_is_rejected(engines, name, duration_ms):
    subject = AlertSubject(AlertKind.DEAD_LETTERS, name)

    with pytest.raises(ValidationFailed):
        await engines.alert_mutes.mute(HOME, subject, duration_ms, by="ada")


async def test_mutes_of_a_namespace_are_limited(engines, clock, monkeypatch):
    monkeypatch.setattr(limits, "ALERT_MUTES_MAX", 2)
    for subject in (DEAD, STALLED, DEAD):
        await engines.alert_mutes.mute(HOME, subject, limits.HOUR_MS, by="ada")
    third = AlertSubject(AlertKind.QUEUE_FULL, "orders")

    with pytest.raises(QuotaReached):
        await engines.alert_mutes.mute(HOME, third, limits.HOUR_MS, by="ada")
    clock.advance(ms=limits.HOUR_MS)
    await engines.alert_mutes.mute(HOME, third, limits.HOUR_MS, by="ada")

    assert await subjects(engines) == [third]


async def test_mutes_are_deleted_with_their_namespace(engines):
    await engines.namespaces.put("acme", NO_QUOTAS)
    await engines.alert_mutes.mute("acme", DEAD, limits.HOUR_MS, by="ada")

    await engines.namespaces.delete("acme")
    await engines.namespaces.put("acme", NO_QUOTAS)

    assert await engines.alert_mutes.list("acme") == []


async def test_mute_requires_permission_on_its_object(service):
    grant = Grant(Effect.ALLOW, ("alert:*",), ("shop-*",))
    own = await service.key(Rights(grants=(grant,)))
    viewer = await service.key(Rights(roles=(Role.VIEWER,)))
    operator = await service.key(Rights(roles=(Role.OPERATOR,)))
    hour = {"duration_seconds": 3600}

    statuses = [
        (await service.request("PUT", path, key, json=hour)).status_code
        for path, key in (
            (PATH, own),
            (PATH.replace("orders", "shop-orders"), own),
            (PATH, viewer),
            (PATH, operator),
        )
    ]
    listed = [
        [
            item["name"]
            for item in (await service.request("GET", "/v1/alerts/mutes", key)).json()["items"]
        ]
        for key in (own, viewer)
    ]

    assert statuses == [403, 200, 403, 200]
    assert listed == [["shop-orders"], ["orders", "shop-orders"]]


async def test_mutes_are_listed_in_pages(service):
    key = await service.key(Rights(roles=(Role.OPERATOR,)))
    for kind in ("dead_letters", "queue_full", "queue_stalled"):
        await service.request(
            "PUT", f"/v1/alerts/{kind}/orders/mute", key, json={"duration_seconds": 60}
        )

    first = (await service.request("GET", "/v1/alerts/mutes?limit=2", key)).json()
    path = f"/v1/alerts/mutes?limit=2&cursor={first['next_cursor']}"
    second = (await service.request("GET", path, key)).json()

    kinds = [[item["kind"] for item in page["items"]] for page in (first, second)]
    assert kinds == [["dead_letters", "queue_full"], ["queue_stalled"]]
    assert second["next_cursor"] is None


async def test_mute_and_its_end_are_audited(service):
    key = await service.key(Rights(roles=(Role.OPERATOR,)))
    await service.request("PUT", PATH, key, json={"duration_seconds": 3600})
    await service.request("PUT", PATH, key, json={"duration_seconds": 1})
    await service.request("DELETE", PATH, key)

    entries = await service.storage.audit_log.page(
        AuditFilter(resource="alerts/dead_letters/orders")
    )

    assert [(entry.call.operation, entry.outcome) for entry in entries] == [
        ("unmute_alert", "done"),
        ("mute_alert", "refused:validation_failed"),
        ("mute_alert", "done"),
    ]
