"""Granting of rights, and changing and listing of keys."""

import asyncio

import pytest
from msgspec.structs import replace

from storage.domain import limits
from storage.domain.access.credentials import CredentialRequest, Rights
from storage.domain.access.permissions import Action, Effect, Grant, Policy, Principal, Role
from storage.domain.errors import (
    Forbidden,
    InvalidCursor,
    KeyNotFound,
    NamespaceNotFound,
    PreconditionFailed,
    ValidationFailed,
)
from storage.domain.quotas import Rates
from tests.integration.access.credentials.conftest import (
    ADMIN,
    CREATED,
    PRODUCER,
    TENANT_ADMIN,
    ChangeNotifications,
    make_namespace,
    use,
)

pytestmark = pytest.mark.one_store


# Rights are limited to those of the creator


def _with(*grants: Grant, rates: Rates | None = None) -> Principal:
    return Principal("clerk", policy=Policy(grants), rates=rates)


def _allow(action: str, *resources: str) -> Grant:
    return Grant(Effect.ALLOW, (action,), resources or ("*",))


CLERK = _with(_allow("admin:keys"), _allow("queue:*", "orders-*"))


async def test_key_with_rights_its_creator_lacks_is_rejected(credentials):
    for rights in (
        Rights(roles=(Role.ADMIN,)),
        Rights(roles=(Role.PRODUCER,)),
        Rights(grants=(_allow("queue:send"),)),
        Rights(grants=(_allow("*", "orders-*"),)),
        Rights(grants=(_allow("queue:send", "orders-*"), _allow("admin:namespaces"))),
    ):
        with pytest.raises(Forbidden, match="clerk"):
            await credentials.create(CLERK, CredentialRequest(name="orders-a", rights=rights))


async def test_key_with_rights_its_creator_has_is_created(credentials):
    rights = Rights(grants=(_allow("queue:send", "orders-eu-*"),))

    issued, _ = await credentials.create(CLERK, CredentialRequest(name="orders-a", rights=rights))

    assert issued.created_by == "clerk"


async def test_creating_key_without_permission_is_rejected(credentials):
    with pytest.raises(Forbidden, match="admin:keys"):
        await credentials.create(_with(_allow("queue:*")), CREATED)


async def test_denial_is_inherited_by_created_key(credentials):
    denied = Grant(Effect.DENY, ("queue:purge",))
    restricted = _with(_allow("*"), denied)

    with pytest.raises(Forbidden):
        await credentials.create(restricted, replace(CREATED, rights=Rights(roles=(Role.ADMIN,))))

    rights = Rights(roles=(Role.ADMIN,), grants=(denied,))
    assert await credentials.create(restricted, replace(CREATED, rights=rights))


async def test_key_rates_cannot_exceed_those_of_its_creator(credentials):
    slow = _with(_allow("*"), rates=Rates(calls_per_second=10))

    for rates in (None, Rates(calls_per_second=11), Rates(messages_per_second=1)):
        with pytest.raises(Forbidden):
            await credentials.create(slow, replace(CREATED, rights=replace(PRODUCER, rates=rates)))

    rights = replace(PRODUCER, rates=Rates(calls_per_second=10, bytes_per_second=5))
    assert await credentials.create(slow, replace(CREATED, rights=rights))


async def test_changing_key_with_greater_rights_is_rejected(credentials):
    rights = Rights(roles=(Role.ADMIN,))
    issued, _ = await credentials.create(ADMIN, CredentialRequest(name="root", rights=rights))

    with pytest.raises(Forbidden):
        await credentials.rotate(CLERK, issued.id)
    with pytest.raises(Forbidden):
        await credentials.change(
            CLERK, issued.id, lambda _: Rights(grants=(_allow("queue:send", "orders-*"),))
        )

    assert (await credentials.get(ADMIN, issued.id)).version == 1


async def test_keys_of_another_namespace_are_not_found(credentials, database_url):
    await make_namespace(database_url, "acme")
    issued, _ = await credentials.create(replace(ADMIN, namespace="acme"), CREATED)

    for verb in (credentials.get, credentials.revoke, credentials.rotate):
        with pytest.raises(KeyNotFound):
            await verb(TENANT_ADMIN, issued.id)
    with pytest.raises(KeyNotFound):
        await credentials.change(TENANT_ADMIN, issued.id, lambda rights: rights)

    assert await credentials.page(TENANT_ADMIN) == ([], None)


async def test_deployment_wide_keys_require_deployment_wide_rights(credentials, database_url):
    await make_namespace(database_url, "acme")
    request = CredentialRequest(
        name="root", rights=Rights(roles=(Role.ADMIN,)), all_namespaces=True
    )
    with pytest.raises(Forbidden, match="all namespaces"):
        await credentials.create(TENANT_ADMIN, request)
    issued, _ = await credentials.create(replace(ADMIN, namespace="acme"), request)

    for verb in (credentials.get, credentials.revoke, credentials.rotate):
        with pytest.raises(KeyNotFound):
            await verb(TENANT_ADMIN, issued.id)

    assert issued.namespace == "default"
    assert await credentials.page(TENANT_ADMIN) == ([], None)
    assert await credentials.get(replace(ADMIN, namespace="acme"), issued.id) == issued


async def test_deployment_starts_with_one_administrator(credentials, other):
    made = await asyncio.gather(*(engine.create_first() for engine in (credentials, other) * 3))

    [secret] = [one for one in made if one is not None]
    found = await credentials.authenticate(secret.token)
    assert found is not None
    assert found.all_namespaces
    assert found.principal("default").policy.allows(Action.ADMIN_NAMESPACES, "*")


async def test_keys_can_be_managed_by_name_pattern(credentials):
    by_name = _with(_allow("admin:keys", "svc-*"), _allow("queue:send"))
    rights = Rights(grants=(_allow("queue:send"),))
    seen, _ = await credentials.create(ADMIN, CredentialRequest(name="svc-a", rights=rights))
    hidden, _ = await credentials.create(ADMIN, CredentialRequest(name="other", rights=rights))

    assert (await credentials.page(by_name))[0] == [seen]
    assert await credentials.revoke(by_name, seen.id)
    with pytest.raises(KeyNotFound):
        await credentials.get(by_name, hidden.id)
    with pytest.raises(Forbidden):
        await credentials.create(by_name, CredentialRequest(name="other", rights=rights))


async def test_unknown_namespace_has_no_keys(credentials):
    with pytest.raises(NamespaceNotFound, match="nowhere"):
        await credentials.create(replace(ADMIN, namespace="nowhere"), CREATED)


# Changes and lists


async def test_change_increments_version_and_notifies(credentials, other, clock):
    issued, _ = await credentials.create(ADMIN, CREATED)
    assert await other.find(issued.id)
    notifications = ChangeNotifications(other)
    rates = Rates(calls_per_second=5)
    clock.advance(ms=7)

    changed = await credentials.change(
        ADMIN, issued.id, lambda rights: replace(rights, rates=rates), if_match=1
    )
    with pytest.raises(PreconditionFailed):
        await credentials.change(ADMIN, issued.id, lambda rights: rights, if_match=1)

    assert await notifications.next() == issued.id
    found = await other.find(issued.id)
    assert found is not None
    assert found.rates == rates
    assert (changed.version, changed.changed_at_ms) == (2, clock.now_ms())
    assert await credentials.get(ADMIN, issued.id) == changed


MEANINGLESS = [
    (Rights(), "/roles"),
    (Rights(grants=(_allow("queue:sned"),)), "/grants/0/actions/0"),
    (Rights(grants=(_allow("queue:send", "a/b"),)), "/grants/0/resources/0"),
    (Rights(grants=(Grant(Effect.ALLOW, ()),)), "/grants/0/actions"),
    (replace(PRODUCER, expires_at_ms=5), "/expires_at"),
    (replace(PRODUCER, rates=Rates(calls_per_second=0)), "/rates/calls_per_second"),
    (replace(PRODUCER, rates=Rates(bytes_per_second=float("nan"))), "/rates/bytes_per_second"),
]


async def test_meaningless_rights_are_rejected_with_pointer(credentials):
    for rights, pointer in MEANINGLESS:
        with pytest.raises(ValidationFailed) as refused:
            await credentials.create(ADMIN, replace(CREATED, rights=rights))

        assert [fault.pointer for fault in refused.value.faults] == [pointer]


async def test_pages_are_ordered_by_name(credentials):
    for name in ("b", "a", "c", "a"):
        await credentials.create(ADMIN, replace(CREATED, name=name))

    first, after = await credentials.page(ADMIN, limit=3)
    rest, end = await credentials.page(ADMIN, after=after, limit=3)
    named, _ = await credentials.page(ADMIN, name="a")

    assert [one.name for one in (*first, *rest)] == ["a", "a", "b", "c"]
    assert end is None
    assert named == first[:2]


async def test_malformed_cursor_is_rejected(credentials):
    with pytest.raises(InvalidCursor):
        await credentials.page(ADMIN, after=("zero\x00", "x"))


async def test_last_use_is_recorded_once_per_minute_across_processes(credentials, other, clock):
    issued, _ = await credentials.create(ADMIN, CREATED)
    first_ms = clock.now_ms()
    await use(credentials, issued.id)
    clock.advance(ms=59_000)
    await use(credentials, issued.id)
    await use(other, issued.id)
    assert (await credentials.get(ADMIN, issued.id)).last_used_at_ms == first_ms

    clock.advance(ms=1_000)
    await use(credentials, issued.id)

    after = await credentials.get(ADMIN, issued.id)
    assert (after.last_used_at_ms, after.version) == (clock.now_ms(), 1)


async def test_long_ended_keys_are_deleted_when_one_is_created(credentials, clock):
    expiring = replace(PRODUCER, expires_at_ms=clock.now_ms() + 1)
    await credentials.create(ADMIN, replace(CREATED, rights=expiring))
    revoked, _ = await credentials.create(ADMIN, CREATED)
    await credentials.revoke(ADMIN, revoked.id)
    clock.advance(ms=limits.CREDENTIAL_RETENTION_MS + 1)

    issued, _ = await credentials.create(ADMIN, CREATED)

    assert (await credentials.page(ADMIN))[0] == [issued]
