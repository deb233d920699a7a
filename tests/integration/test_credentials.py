"""Credentials over a real Postgres: who may give which rights, and who hears when they end."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import psycopg
import pytest
from msgspec.structs import replace

from storage.credentials import Credentials
from storage.domain import limits
from storage.domain.access import (
    LOCAL_ADMINISTRATOR,
    Action,
    Effect,
    Grant,
    Policy,
    Principal,
    Role,
)
from storage.domain.clock import ManualClock
from storage.domain.credentials import CredentialKind, CredentialRequest, Rights, parse_key
from storage.domain.errors import (
    Forbidden,
    InvalidCursor,
    KeyNotFound,
    KeyRefused,
    NamespaceNotFound,
    PreconditionFailed,
    SecretsOff,
    SecretUnreadable,
    ValidationFailed,
)
from storage.domain.quotas import Rates
from storage.entrances import LoggedIn
from storage.postgres.database import open_database
from storage.postgres.listener import Listener, running
from storage.secrets import SecretBox, new_key
from storage.settings import StorageSettings
from tests.databases import fresh_database

pytestmark = pytest.mark.one_store

ADMIN = LOCAL_ADMINISTRATOR
TENANT_ADMIN = Principal("ada", policy=Policy(Rights(roles=(Role.ADMIN,)).expanded))
PRODUCER = Rights(roles=(Role.PRODUCER,))
CREATED = CredentialRequest(name="orders-service", rights=PRODUCER)
OLD_KEY, NEW_KEY = new_key(), new_key()
OpenProcess = Callable[..., AbstractAsyncContextManager[Credentials]]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(scope="module")
def module_database_url(postgres_server_url: str, migrated_template: str) -> Iterator[str]:
    """One database for all of these: making one takes longer than most of them."""
    with fresh_database(postgres_server_url, migrated_template) as url:
        yield url


@pytest.fixture
def database_url(module_database_url: str) -> str:
    """With nothing in it that a test before has left."""
    with psycopg.connect(module_database_url, autocommit=True) as connection:
        connection.execute("TRUNCATE credentials, tickets, sessions")
        connection.execute("DELETE FROM namespaces WHERE name <> 'default'")
    return module_database_url


@pytest.fixture
def process(database_url: str, clock: ManualClock) -> OpenProcess:
    """Opens the engine as one process of the deployment has it."""
    where = StorageSettings(redis_url="redis://unused", database_url=database_url)

    @asynccontextmanager
    async def opened(*keys: str) -> AsyncIterator[Credentials]:
        listener = Listener(where.database_url)
        async with open_database(where) as database:
            credentials = Credentials(database, listener, clock, SecretBox(keys))
            async with running(listener):
                await listener.attempted()
                try:
                    yield credentials
                finally:
                    await credentials.close()

    return opened


@pytest.fixture
async def credentials(process: OpenProcess) -> AsyncIterator[Credentials]:
    async with process(OLD_KEY) as credentials:
        yield credentials


@pytest.fixture
async def other(process: OpenProcess) -> AsyncIterator[Credentials]:
    """The same deployment in another process."""
    async with process(OLD_KEY) as credentials:
        yield credentials


class Heard:
    """What a process was told of changes."""

    def __init__(self, credentials: Credentials) -> None:
        self._told: asyncio.Queue[str | None] = asyncio.Queue()
        credentials.on_change(self._told.put_nowait)

    async def next(self) -> str | None:
        return await asyncio.wait_for(self._told.get(), 10)


# Who is calling


async def test_a_new_key_proves_who_has_it_and_nothing_else_does(credentials):
    issued, secret = await credentials.create(ADMIN, CREATED)
    another = (await credentials.create(ADMIN, CREATED))[1]

    found = await credentials.proved(secret.word)
    with_the_wrong_secret = f"msk_{issued.id}_{another.secret}"

    assert found is not None
    principal = found.principal("default")
    assert (principal.name, principal.credential) == ("orders-service", issued.id)
    assert principal.policy.allows(Action.QUEUE_SEND, "orders")
    assert not principal.policy.allows(Action.QUEUE_RECEIVE, "orders")
    assert not found.is_proved_by(another.secret)
    assert await credentials.proved(with_the_wrong_secret + secret.word[-6:]) is None


async def test_a_policy_is_made_once_for_a_credential(credentials):
    issued, _ = await credentials.create(ADMIN, CREATED)

    found = await credentials.find(issued.id)

    assert found is not None
    assert found.principal("default").policy is found.principal("default").policy
    assert credentials.cached(issued.id) is found


async def test_an_id_that_nobody_has_is_asked_for_once(credentials, database_url):
    assert await credentials.find("nobodyhasone") is None

    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute("ALTER TABLE credentials RENAME TO moved_away")
        try:
            assert await credentials.find("nobodyhasone") is None
        finally:
            await connection.execute("ALTER TABLE moved_away RENAME TO credentials")


async def test_what_is_no_id_is_not_asked_for(credentials):
    for word in ("", "short", "with space 12", "zero\x00zero12", "é" * 12):
        assert await credentials.find(word) is None


async def test_a_key_that_expires_is_not_found_from_then_on(credentials, clock):
    rights = replace(PRODUCER, expires_at_ms=clock.now_ms() + 5_000)
    issued, secret = await credentials.create(ADMIN, replace(CREATED, rights=rights))
    assert await credentials.proved(secret.word)

    clock.advance(ms=5_000)

    assert credentials.cached(issued.id) is None
    assert await credentials.find(issued.id) is None


async def test_many_unknown_ids_at_once_take_one_statement_at_a_time(credentials):
    ids = [f"unknown{number:05}" for number in range(500)]

    assert await asyncio.gather(*map(credentials.find, ids)) == [None] * 500


async def test_a_pair_is_kept_encrypted_and_opens_for_whoever_checks_a_signature(
    credentials, database_url
):
    issued, secret = await credentials.create(ADMIN, replace(CREATED, kind=CredentialKind.PAIR))

    found = await credentials.find(issued.id)
    stored = await _stored(database_url)

    assert issued.id.startswith("MSAK")
    assert (len(issued.id), len(secret.word)) == (20, 40)
    assert found is not None
    assert found.secret == secret.word.encode()
    assert secret.word.encode() not in stored


async def test_no_api_keys_secret_is_stored(credentials, database_url):
    _, secret = await credentials.create(ADMIN, CREATED)

    assert secret.secret.encode() not in await _stored(database_url)


async def test_master_keys_rotate_under_pairs(credentials, process):
    issued, secret = await credentials.create(ADMIN, replace(CREATED, kind=CredentialKind.PAIR))

    async with process(NEW_KEY, OLD_KEY) as rotated:
        found = await rotated.find(issued.id)
    async with process(NEW_KEY) as without_the_old:
        with pytest.raises(SecretUnreadable):
            await without_the_old.find(issued.id)

    assert found is not None
    assert found.secret == secret.word.encode()


async def test_without_master_keys_there_are_no_pairs_but_keys(process):
    async with process() as credentials:
        with pytest.raises(SecretsOff):
            await credentials.create(ADMIN, replace(CREATED, kind=CredentialKind.PAIR))

        assert await credentials.create(ADMIN, CREATED)


# What ends


async def test_another_process_hears_of_a_revocation(credentials, other):
    issued, secret = await credentials.create(ADMIN, CREATED)
    assert await other.proved(secret.word)
    heard = Heard(other)

    await credentials.revoke(ADMIN, issued.id)

    assert await heard.next() == issued.id
    assert other.cached(issued.id) is None
    assert await other.proved(secret.word) is None
    assert await credentials.proved(secret.word) is None


async def test_whoever_hears_nothing_any_more_forgets_everything_and_asks_each_time(
    credentials, other, database_url
):
    issued, _ = await credentials.create(ADMIN, CREATED)
    assert await other.find(issued.id)
    heard = Heard(other)

    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'millstream-listener' AND datname = current_database()"
        )

    assert await heard.next() is None
    assert other.cached(issued.id) is None
    assert await other.find(issued.id)


async def test_what_was_not_heard_is_read_again_after_half_a_minute(
    credentials, clock, database_url
):
    issued, _ = await credentials.create(ADMIN, CREATED)
    assert await credentials.find(issued.id)
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute("UPDATE credentials SET revoked_at_ms = 1")
    assert credentials.cached(issued.id)

    clock.advance(ms=limits.CREDENTIAL_AGE_MS_MAX)

    assert credentials.cached(issued.id) is None
    assert await credentials.find(issued.id) is None


async def test_a_revoked_key_stays_so_and_is_listed(credentials, clock):
    issued, _ = await credentials.create(ADMIN, CREATED)
    revoked = await credentials.revoke(ADMIN, issued.id)
    clock.advance(ms=1_000)

    again = await credentials.revoke(ADMIN, issued.id)
    with pytest.raises(KeyRefused, match="revoked"):
        await credentials.change(ADMIN, issued.id, lambda _: PRODUCER)
    with pytest.raises(KeyRefused, match="revoked"):
        await credentials.rotate(ADMIN, issued.id)

    assert again == revoked == await credentials.get(ADMIN, issued.id)
    assert await credentials.page(ADMIN) == ([revoked], None)


# Rotation


async def test_a_rotated_key_goes_on_beside_the_new_one_until_its_overlap_is_over(
    credentials, clock
):
    old, old_secret = await credentials.create(ADMIN, CREATED)

    new, new_secret = await credentials.rotate(ADMIN, old.id, overlap_ms=60_000)

    assert (new.name, new.rights, new.family) == (old.name, old.rights, old.id)
    assert await credentials.proved(old_secret.word)
    assert await credentials.proved(new_secret.word)
    clock.advance(ms=60_000)
    assert await credentials.proved(old_secret.word) is None
    assert await credentials.proved(new_secret.word)


async def test_no_more_than_two_of_a_family_are_live(credentials, clock):
    first, _ = await credentials.create(ADMIN, CREATED)
    second, _ = await credentials.rotate(ADMIN, first.id)

    for credential_id in (first.id, second.id):
        with pytest.raises(KeyRefused, match="revoke one"):
            await credentials.rotate(ADMIN, credential_id)
    third, _ = await credentials.rotate(ADMIN, second.id, overlap_ms=0)
    await credentials.revoke(ADMIN, first.id)
    fourth, _ = await credentials.rotate(ADMIN, third.id)

    assert await credentials.find(second.id) is None
    assert all([await credentials.find(one.id) for one in (third, fourth)])


async def test_of_many_rotations_at_once_one_wins(credentials, other):
    issued, _ = await credentials.create(ADMIN, CREATED)

    outcomes = await asyncio.gather(
        *(engine.rotate(ADMIN, issued.id) for engine in (credentials, other) for _ in range(5)),
        return_exceptions=True,
    )

    assert sum(isinstance(one, KeyRefused) for one in outcomes) == 9
    live = [one for one in (await credentials.page(ADMIN))[0] if one.revoked_at_ms is None]
    assert len(live) == 2


async def test_a_key_that_expires_is_followed_by_one_that_lives_as_long(credentials, clock):
    rights = replace(PRODUCER, expires_at_ms=clock.now_ms() + 100_000)
    issued, _ = await credentials.create(ADMIN, replace(CREATED, rights=rights))
    clock.advance(ms=60_000)

    new, _ = await credentials.rotate(ADMIN, issued.id)

    assert new.rights.expires_at_ms == clock.now_ms() + 100_000
    old = await credentials.get(ADMIN, issued.id)
    assert old.rights.expires_at_ms == rights.expires_at_ms


async def test_an_overlap_has_its_bounds(credentials):
    issued, _ = await credentials.create(ADMIN, CREATED)

    for overlap_ms in (-1, limits.CREDENTIAL_OVERLAP_MS_MAX + 1):
        with pytest.raises(ValidationFailed):
            await credentials.rotate(ADMIN, issued.id, overlap_ms)


# Nobody gives what they do not have


def _with(*grants: Grant, rates: Rates | None = None) -> Principal:
    return Principal("clerk", policy=Policy(grants), rates=rates)


def _allow(action: str, *resources: str) -> Grant:
    return Grant(Effect.ALLOW, (action,), resources or ("*",))


CLERK = _with(_allow("admin:keys"), _allow("queue:*", "orders-*"))


async def test_nobody_makes_a_key_with_rights_of_which_they_lack_one(credentials):
    for rights in (
        Rights(roles=(Role.ADMIN,)),
        Rights(roles=(Role.PRODUCER,)),
        Rights(grants=(_allow("queue:send"),)),
        Rights(grants=(_allow("*", "orders-*"),)),
        Rights(grants=(_allow("queue:send", "orders-*"), _allow("admin:namespaces"))),
    ):
        with pytest.raises(Forbidden, match="clerk"):
            await credentials.create(CLERK, CredentialRequest(name="orders-a", rights=rights))


async def test_what_one_has_one_may_give(credentials):
    rights = Rights(grants=(_allow("queue:send", "orders-eu-*"),))

    issued, _ = await credentials.create(CLERK, CredentialRequest(name="orders-a", rights=rights))

    assert issued.created_by == "clerk"


async def test_who_may_not_manage_keys_makes_none(credentials):
    with pytest.raises(Forbidden, match="admin:keys"):
        await credentials.create(_with(_allow("queue:*")), CREATED)


async def test_a_denial_is_handed_on(credentials):
    denied = Grant(Effect.DENY, ("queue:purge",))
    restricted = _with(_allow("*"), denied)

    with pytest.raises(Forbidden):
        await credentials.create(restricted, replace(CREATED, rights=Rights(roles=(Role.ADMIN,))))

    rights = Rights(roles=(Role.ADMIN,), grants=(denied,))
    assert await credentials.create(restricted, replace(CREATED, rights=rights))


async def test_whoever_is_slow_makes_nobody_fast(credentials):
    slow = _with(_allow("*"), rates=Rates(calls_per_second=10))

    for rates in (None, Rates(calls_per_second=11), Rates(messages_per_second=1)):
        with pytest.raises(Forbidden):
            await credentials.create(slow, replace(CREATED, rights=replace(PRODUCER, rates=rates)))

    rights = replace(PRODUCER, rates=Rates(calls_per_second=10, bytes_per_second=5))
    assert await credentials.create(slow, replace(CREATED, rights=rights))


async def test_an_administrators_key_is_not_rotated_or_changed_by_whoever_has_less(credentials):
    rights = Rights(roles=(Role.ADMIN,))
    issued, _ = await credentials.create(ADMIN, CredentialRequest(name="root", rights=rights))

    with pytest.raises(Forbidden):
        await credentials.rotate(CLERK, issued.id)
    with pytest.raises(Forbidden):
        await credentials.change(
            CLERK, issued.id, lambda _: Rights(grants=(_allow("queue:send", "orders-*"),))
        )

    assert (await credentials.get(ADMIN, issued.id)).version == 1


async def test_keys_of_another_namespace_are_not_there(credentials, database_url):
    await _namespace(database_url, "acme")
    issued, _ = await credentials.create(replace(ADMIN, namespace="acme"), CREATED)

    for verb in (credentials.get, credentials.revoke, credentials.rotate):
        with pytest.raises(KeyNotFound):
            await verb(TENANT_ADMIN, issued.id)
    with pytest.raises(KeyNotFound):
        await credentials.change(TENANT_ADMIN, issued.id, lambda rights: rights)

    assert await credentials.page(TENANT_ADMIN) == ([], None)


async def test_only_who_is_everywhere_makes_and_sees_keys_that_are(credentials, database_url):
    await _namespace(database_url, "acme")
    request = CredentialRequest(name="root", rights=Rights(roles=(Role.ADMIN,)), everywhere=True)
    with pytest.raises(Forbidden, match="everywhere"):
        await credentials.create(TENANT_ADMIN, request)
    issued, _ = await credentials.create(replace(ADMIN, namespace="acme"), request)

    for verb in (credentials.get, credentials.revoke, credentials.rotate):
        with pytest.raises(KeyNotFound):
            await verb(TENANT_ADMIN, issued.id)

    assert issued.namespace == "default"
    assert await credentials.page(TENANT_ADMIN) == ([], None)
    assert await credentials.get(replace(ADMIN, namespace="acme"), issued.id) == issued


async def test_a_deployment_begins_with_one_administrator(credentials, other):
    made = await asyncio.gather(*(engine.create_first() for engine in (credentials, other) * 3))

    [secret] = [one for one in made if one is not None]
    found = await credentials.proved(secret.word)
    assert found is not None
    assert found.everywhere
    assert found.principal("default").policy.allows(Action.ADMIN_NAMESPACES, "*")


async def test_keys_may_be_managed_by_name(credentials):
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


async def test_a_namespace_that_is_not_there_has_no_keys(credentials):
    with pytest.raises(NamespaceNotFound, match="nowhere"):
        await credentials.create(replace(ADMIN, namespace="nowhere"), CREATED)


# Changes and lists


async def test_a_change_counts_versions_and_is_heard(credentials, other, clock):
    issued, _ = await credentials.create(ADMIN, CREATED)
    assert await other.find(issued.id)
    heard = Heard(other)
    rates = Rates(calls_per_second=5)
    clock.advance(ms=7)

    changed = await credentials.change(
        ADMIN, issued.id, lambda rights: replace(rights, rates=rates), if_match=1
    )
    with pytest.raises(PreconditionFailed):
        await credentials.change(ADMIN, issued.id, lambda rights: rights, if_match=1)

    assert await heard.next() == issued.id
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


async def test_rights_that_mean_nothing_are_refused_where_they_stand(credentials):
    for rights, pointer in MEANINGLESS:
        with pytest.raises(ValidationFailed) as refused:
            await credentials.create(ADMIN, replace(CREATED, rights=rights))

        assert [fault.pointer for fault in refused.value.faults] == [pointer]


async def test_pages_go_by_name(credentials):
    for name in ("b", "a", "c", "a"):
        await credentials.create(ADMIN, replace(CREATED, name=name))

    first, after = await credentials.page(ADMIN, limit=3)
    rest, end = await credentials.page(ADMIN, after=after, limit=3)
    named, _ = await credentials.page(ADMIN, name="a")

    assert [one.name for one in (*first, *rest)] == ["a", "a", "b", "c"]
    assert end is None
    assert named == first[:2]


async def test_a_cursor_that_is_no_name_is_refused(credentials):
    with pytest.raises(InvalidCursor):
        await credentials.page(ADMIN, after=("zero\x00", "x"))


async def test_the_last_use_is_noted_once_a_minute_whoever_notes_it(credentials, other, clock):
    issued, _ = await credentials.create(ADMIN, CREATED)
    first_ms = clock.now_ms()
    await _use(credentials, issued.id)
    clock.advance(ms=59_000)
    await _use(credentials, issued.id)
    await _use(other, issued.id)
    assert (await credentials.get(ADMIN, issued.id)).last_used_at_ms == first_ms

    clock.advance(ms=1_000)
    await _use(credentials, issued.id)

    after = await credentials.get(ADMIN, issued.id)
    assert (after.last_used_at_ms, after.version) == (clock.now_ms(), 1)


async def test_what_ended_long_ago_is_forgotten_as_new_ones_are_made(credentials, clock):
    expiring = replace(PRODUCER, expires_at_ms=clock.now_ms() + 1)
    await credentials.create(ADMIN, replace(CREATED, rights=expiring))
    revoked, _ = await credentials.create(ADMIN, CREATED)
    await credentials.revoke(ADMIN, revoked.id)
    clock.advance(ms=limits.CREDENTIAL_KEPT_MS + 1)

    issued, _ = await credentials.create(ADMIN, CREATED)

    assert (await credentials.page(ADMIN))[0] == [issued]


# Tickets


async def test_a_ticket_is_redeemed_once_by_whoever_is_first(credentials, other):
    issued, _ = await credentials.create(ADMIN, CREATED)
    asker = await credentials.find(issued.id)
    assert asker is not None
    word, _ = await _ticket(credentials, asker.principal("default"))

    outcomes = await asyncio.gather(
        *(engine.redeem_ticket(word) for engine in (credentials, other) for _ in range(10))
    )

    [winner] = [one for one in outcomes if one is not None]
    assert (winner.id, winner.name, winner.grants) == (issued.id, issued.name, asker.grants)
    assert (winner.digest, winner.secret) == (b"", b"")
    assert await credentials.redeem_ticket(word) is None


async def test_a_ticket_is_good_for_half_a_minute(credentials, clock):
    word, ends_at_ms = await _ticket(credentials, ADMIN)
    assert ends_at_ms == clock.now_ms() + 30_000

    clock.advance(ms=30_000)

    assert await credentials.redeem_ticket(word) is None


async def test_a_ticket_ends_with_the_key_that_it_was_asked_with(credentials):
    issued, secret = await credentials.create(ADMIN, CREATED)
    asker = await credentials.proved(secret.word)
    assert asker is not None
    word, _ = await _ticket(credentials, asker.principal("default"))

    await credentials.revoke(ADMIN, issued.id)

    assert await credentials.redeem_ticket(word) is None


async def test_a_ticket_of_a_token_has_its_rights_and_its_end(credentials, clock):
    rates, ends_ms = Rates(calls_per_second=3), clock.now_ms() + 90_000
    asker = Principal("bob", "default", Policy(PRODUCER.expanded), expires_ms=ends_ms, rates=rates)

    word, _ = await _ticket(credentials, asker)
    found = await credentials.redeem_ticket(word)

    assert found is not None
    assert (found.id, found.kind, found.rates) == ("", CredentialKind.TOKEN, rates)
    assert (found.name, found.grants, found.expires_ms) == ("bob", PRODUCER.expanded, ends_ms)


async def test_a_ticket_stays_in_the_namespace_that_it_was_asked_from(credentials, database_url):
    await _namespace(database_url, "acme")
    request = CredentialRequest(name="root", rights=Rights(roles=(Role.ADMIN,)), everywhere=True)
    _, secret = await credentials.create(ADMIN, request)
    asker = await credentials.proved(secret.word)
    assert asker is not None

    word, _ = await _ticket(credentials, asker.principal("acme"))
    found = await credentials.redeem_ticket(word)

    assert found is not None
    assert (found.namespace, found.everywhere) == ("acme", False)


async def test_what_is_no_ticket_is_not_redeemed(credentials):
    for word in ("", "mst_short", "mst_" + "a" * 49, "mss_" + "a" * 49):
        assert await credentials.redeem_ticket(word) is None
        assert await credentials.find_session(word) is None


# Sessions


@pytest.fixture
async def api_key(credentials):
    return await credentials.create(ADMIN, CREATED)


async def test_a_session_is_the_key_that_logged_in(credentials, other, clock, api_key):
    issued, secret = api_key
    session = await _session(credentials, secret.word)

    found = await other.find_session(session.word)

    assert found is not None
    assert (found.id, found.name) == (issued.id, issued.name)
    assert found.expires_ms == session.ends_at_ms == clock.now_ms() + 24 * limits.HOUR_MS


async def test_nobody_logs_in_with_a_wrong_key(credentials, api_key):
    _, secret = api_key
    parsed = parse_key(secret.word)
    assert parsed is not None

    for word in ("", secret.word[:-1] + "?", "msk_" + "a" * 12 + "_" + "b" * 38):
        assert await credentials.log_in(word) is None


async def test_a_session_ends_when_it_is_left_alone(credentials, clock, api_key):
    session = await _session(credentials, api_key[1].word)
    clock.advance(ms=7 * limits.HOUR_MS)
    assert await credentials.find_session(session.word)
    await credentials.flush_uses()
    clock.advance(ms=7 * limits.HOUR_MS)
    assert await credentials.find_session(session.word)
    await credentials.flush_uses()

    clock.advance(ms=8 * limits.HOUR_MS)

    assert await credentials.find_session(session.word) is None


async def test_a_session_ends_after_a_day_however_much_it_is_used(credentials, clock, api_key):
    session = await _session(credentials, api_key[1].word)
    for _ in range(23):
        clock.advance(ms=limits.HOUR_MS)
        assert await credentials.find_session(session.word)
        await credentials.flush_uses()

    clock.advance(ms=limits.HOUR_MS)

    assert await credentials.find_session(session.word) is None


async def test_a_session_ends_with_its_key(credentials, other, api_key):
    issued, secret = api_key
    session = await _session(credentials, secret.word)
    assert await other.find_session(session.word)
    heard = Heard(other)

    await credentials.revoke(ADMIN, issued.id)

    assert await heard.next() == issued.id
    assert await other.find_session(session.word) is None


async def test_a_session_that_logged_out_is_over_in_this_process_and_in_others(
    credentials, other, api_key
):
    session = await _session(credentials, api_key[1].word)
    assert await other.find_session(session.word)

    await credentials.log_out(session.word)
    marker, _ = await credentials.create(ADMIN, CREATED)
    heard = Heard(other)
    await credentials.revoke(ADMIN, marker.id)

    assert await heard.next() == marker.id  # and so what was announced before it was heard as well
    assert await credentials.find_session(session.word) is None
    assert await other.find_session(session.word) is None


async def _ticket(credentials: Credentials, by: Principal) -> tuple[str, int]:
    made = await credentials.make_ticket(by)
    assert made is not None
    return made


async def _session(credentials: Credentials, word: str) -> LoggedIn:
    made = await credentials.log_in(word)
    assert made is not None
    return made


async def _use(credentials: Credentials, credential_id: str) -> None:
    credentials.used(credential_id)
    await credentials.flush_uses()


async def _namespace(database_url: str, name: str) -> None:
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute(
            "INSERT INTO namespaces (name, account_id) VALUES (%s, '123456789012')", [name]
        )


async def _stored(database_url: str) -> bytes:
    """Everything that Postgres has of credentials."""
    async with await psycopg.AsyncConnection.connect(database_url) as connection:
        rows = await (await connection.execute("SELECT * FROM credentials")).fetchall()
    return b"".join(
        value if isinstance(value, bytes) else str(value).encode() for row in rows for value in row
    )
