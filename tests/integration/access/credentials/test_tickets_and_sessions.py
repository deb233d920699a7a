"""Browser credentials: tickets and sessions."""

import asyncio

import pytest

from storage.domain import limits
from storage.domain.access.credentials import CredentialKind, CredentialRequest, Rights, parse_key
from storage.domain.access.permissions import Policy, Principal, Role
from storage.domain.quotas import Rates
from tests.integration.access.credentials.conftest import (
    ADMIN,
    CREATED,
    PRODUCER,
    ChangeNotifications,
    make_namespace,
    session_of,
    ticket_for,
)

pytestmark = pytest.mark.one_store


# Tickets


async def test_ticket_is_redeemed_once(credentials, other):
    issued, _ = await credentials.create(ADMIN, CREATED)
    asker = await credentials.find(issued.id)
    assert asker is not None
    word, _ = await ticket_for(credentials, asker.principal("default"))

    outcomes = await asyncio.gather(
        *(engine.redeem_ticket(word) for engine in (credentials, other) for _ in range(10))
    )

    [winner] = [outcome for outcome in outcomes if outcome is not None]
    assert (winner.id, winner.name, winner.grants) == (issued.id, issued.name, asker.grants)
    assert (winner.digest, winner.secret) == (b"", b"")
    assert await credentials.redeem_ticket(word) is None


async def test_ticket_expires_after_thirty_seconds(credentials, clock):
    word, ends_at_ms = await ticket_for(credentials, ADMIN)
    assert ends_at_ms == clock.now_ms() + 30_000

    clock.advance(ms=30_000)

    assert await credentials.redeem_ticket(word) is None


async def test_ticket_ends_with_its_key(credentials):
    issued, secret = await credentials.create(ADMIN, CREATED)
    asker = await credentials.authenticate(secret.token)
    assert asker is not None
    word, _ = await ticket_for(credentials, asker.principal("default"))

    await credentials.revoke(ADMIN, issued.id)

    assert await credentials.redeem_ticket(word) is None


async def test_ticket_of_token_has_its_rights_and_expiry(credentials, clock):
    rates, ends_ms = Rates(calls_per_second=3), clock.now_ms() + 90_000
    asker = Principal("bob", "default", Policy(PRODUCER.expanded), expires_ms=ends_ms, rates=rates)

    word, _ = await ticket_for(credentials, asker)
    found = await credentials.redeem_ticket(word)

    assert found is not None
    assert (found.id, found.kind, found.rates) == ("", CredentialKind.TOKEN, rates)
    assert (found.name, found.grants, found.expires_ms) == ("bob", PRODUCER.expanded, ends_ms)


async def test_ticket_is_bound_to_its_namespace(credentials, database_url):
    await make_namespace(database_url, "acme")
    request = CredentialRequest(
        name="root", rights=Rights(roles=(Role.ADMIN,)), all_namespaces=True
    )
    _, secret = await credentials.create(ADMIN, request)
    asker = await credentials.authenticate(secret.token)
    assert asker is not None

    word, _ = await ticket_for(credentials, asker.principal("acme"))
    found = await credentials.redeem_ticket(word)

    assert found is not None
    assert (found.namespace, found.all_namespaces) == ("acme", False)


async def test_malformed_ticket_is_not_redeemed(credentials):
    for word in ("", "mst_short", "mst_" + "a" * 49, "mss_" + "a" * 49):
        assert await credentials.redeem_ticket(word) is None
        assert await credentials.find_session(word) is None


# Sessions


@pytest.fixture
async def api_key(credentials):
    return await credentials.create(ADMIN, CREATED)


async def test_session_has_rights_of_its_key(credentials, other, clock, api_key):
    issued, secret = api_key
    session = await session_of(credentials, secret.token)

    actual_session = await other.find_session(session.token)

    assert actual_session is not None
    assert (actual_session.id, actual_session.name) == (issued.id, issued.name)
    assert actual_session.expires_ms == session.ends_at_ms == clock.now_ms() + 24 * limits.HOUR_MS


async def test_login_with_wrong_key_is_rejected(credentials, api_key):
    _, secret = api_key
    parsed = parse_key(secret.token)
    assert parsed is not None

    for word in ("", secret.token[:-1] + "?", "msk_" + "a" * 12 + "_" + "b" * 38):
        assert await credentials.log_in(word) is None


async def test_session_expires_when_idle(credentials, clock, api_key):
    session = await session_of(credentials, api_key[1].token)
    clock.advance(ms=7 * limits.HOUR_MS)
    assert await credentials.find_session(session.token)
    await credentials.flush_uses()
    clock.advance(ms=7 * limits.HOUR_MS)
    assert await credentials.find_session(session.token)
    await credentials.flush_uses()

    clock.advance(ms=8 * limits.HOUR_MS)

    assert await credentials.find_session(session.token) is None


async def test_session_expires_after_one_day_despite_use(credentials, clock, api_key):
    session = await session_of(credentials, api_key[1].token)
    for _ in range(23):
        clock.advance(ms=limits.HOUR_MS)
        assert await credentials.find_session(session.token)
        await credentials.flush_uses()

    clock.advance(ms=limits.HOUR_MS)

    assert await credentials.find_session(session.token) is None


async def test_session_ends_with_its_key(credentials, other, api_key):
    issued, secret = api_key
    session = await session_of(credentials, secret.token)
    assert await other.find_session(session.token)
    notifications = ChangeNotifications(other)

    await credentials.revoke(ADMIN, issued.id)

    assert await notifications.next() == issued.id
    assert await other.find_session(session.token) is None


async def test_logged_out_session_ends_in_all_processes(credentials, other, api_key):
    session = await session_of(credentials, api_key[1].token)
    assert await other.find_session(session.token)

    await credentials.log_out(session.token)
    marker, _ = await credentials.create(ADMIN, CREATED)
    notifications = ChangeNotifications(other)
    await credentials.revoke(ADMIN, marker.id)

    assert (
        await notifications.next() == marker.id
    )  # so everything announced earlier has arrived too
    assert await credentials.find_session(session.token) is None
    assert await other.find_session(session.token) is None
