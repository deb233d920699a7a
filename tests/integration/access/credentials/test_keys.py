"""Keys over a real Postgres: authentication, expiry, revocation and rotation."""

import asyncio

import psycopg
import pytest
from msgspec.structs import replace

from storage.domain import limits
from storage.domain.access.credentials import CredentialKind
from storage.domain.access.permissions import Action
from storage.domain.errors import (
    KeyRefused,
    SecretsOff,
    SecretUnreadable,
    ValidationFailed,
)
from tests.integration.access.credentials.conftest import (
    ADMIN,
    CREATED,
    NEW_KEY,
    OLD_KEY,
    PRODUCER,
    ChangeNotifications,
    stored_credentials,
)

pytestmark = pytest.mark.one_store


# Authentication


async def test_only_new_key_authenticates(credentials):
    issued, secret = await credentials.create(ADMIN, CREATED)
    another = (await credentials.create(ADMIN, CREATED))[1]

    found = await credentials.authenticate(secret.token)
    with_the_wrong_secret = f"msk_{issued.id}_{another.secret}"

    assert found is not None
    principal = found.principal("default")
    assert (principal.name, principal.credential) == ("orders-service", issued.id)
    assert principal.policy.allows(Action.QUEUE_SEND, "orders")
    assert not principal.policy.allows(Action.QUEUE_RECEIVE, "orders")
    assert not found.is_verified_by(another.secret)
    assert await credentials.authenticate(with_the_wrong_secret + secret.token[-6:]) is None


async def test_policy_is_built_once_per_credential(credentials):
    issued, _ = await credentials.create(ADMIN, CREATED)

    found = await credentials.find(issued.id)

    assert found is not None
    assert found.principal("default").policy is found.principal("default").policy
    assert credentials.cached(issued.id) is found


async def test_unknown_id_is_looked_up_once(credentials, database_url):
    assert await credentials.find("nobodyhasone") is None

    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute("ALTER TABLE credentials RENAME TO moved_away")
        try:
            assert await credentials.find("nobodyhasone") is None
        finally:
            await connection.execute("ALTER TABLE moved_away RENAME TO credentials")


async def test_malformed_id_is_not_looked_up(credentials):
    for word in ("", "short", "with space 12", "zero\x00zero12", "é" * 12):
        assert await credentials.find(word) is None


async def test_expired_key_is_not_found(credentials, clock):
    rights = replace(PRODUCER, expires_at_ms=clock.now_ms() + 5_000)
    issued, secret = await credentials.create(ADMIN, replace(CREATED, rights=rights))
    assert await credentials.authenticate(secret.token)

    clock.advance(ms=5_000)

    assert credentials.cached(issued.id) is None
    assert await credentials.find(issued.id) is None


async def test_unknown_id_lookups_are_serialized(credentials):
    ids = [f"unknown{number:05}" for number in range(500)]

    assert await asyncio.gather(*map(credentials.find, ids)) == [None] * 500


async def test_key_pair_secret_is_encrypted_and_can_be_decrypted(credentials, database_url):
    issued, secret = await credentials.create(ADMIN, replace(CREATED, kind=CredentialKind.PAIR))

    found = await credentials.find(issued.id)
    stored = await stored_credentials(database_url)

    assert issued.id.startswith("MSAK")
    assert (len(issued.id), len(secret.token)) == (20, 40)
    assert found is not None
    assert found.secret == secret.token.encode()
    assert secret.token.encode() not in stored


async def test_api_key_secret_is_not_stored(credentials, database_url):
    _, secret = await credentials.create(ADMIN, CREATED)

    assert secret.secret.encode() not in await stored_credentials(database_url)


async def test_secret_keys_rotate_under_key_pairs(credentials, process):
    issued, secret = await credentials.create(ADMIN, replace(CREATED, kind=CredentialKind.PAIR))

    async with process(NEW_KEY, OLD_KEY) as rotated:
        found = await rotated.find(issued.id)
    async with process(NEW_KEY) as without_the_old:
        with pytest.raises(SecretUnreadable):
            await without_the_old.find(issued.id)

    assert found is not None
    assert found.secret == secret.token.encode()


async def test_key_pairs_require_secret_keys_but_api_keys_do_not(process):
    async with process() as credentials:
        with pytest.raises(SecretsOff):
            await credentials.create(ADMIN, replace(CREATED, kind=CredentialKind.PAIR))

        assert await credentials.create(ADMIN, CREATED)


# Expiry and revocation


async def test_revocation_reaches_other_process(credentials, other):
    issued, secret = await credentials.create(ADMIN, CREATED)
    assert await other.authenticate(secret.token)
    notifications = ChangeNotifications(other)

    await credentials.revoke(ADMIN, issued.id)

    assert await notifications.next() == issued.id
    assert other.cached(issued.id) is None
    assert await other.authenticate(secret.token) is None
    assert await credentials.authenticate(secret.token) is None


async def test_lost_listener_clears_cache_and_reads_every_time(credentials, other, database_url):
    issued, _ = await credentials.create(ADMIN, CREATED)
    assert await other.find(issued.id)
    notifications = ChangeNotifications(other)

    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'millstream-listener' AND datname = current_database()"
        )

    assert await notifications.next() is None
    assert other.cached(issued.id) is None
    assert await other.find(issued.id)


async def test_missed_change_is_read_after_thirty_seconds(credentials, clock, database_url):
    issued, _ = await credentials.create(ADMIN, CREATED)
    assert await credentials.find(issued.id)
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as connection:
        await connection.execute("UPDATE credentials SET revoked_at_ms = 1")
    assert credentials.cached(issued.id)

    clock.advance(ms=limits.CREDENTIAL_AGE_MS_MAX)

    assert credentials.cached(issued.id) is None
    assert await credentials.find(issued.id) is None


async def test_revoked_key_stays_revoked_and_is_listed(credentials, clock):
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


async def test_rotated_key_is_valid_until_overlap_ends(credentials, clock):
    old, old_secret = await credentials.create(ADMIN, CREATED)

    new, new_secret = await credentials.rotate(ADMIN, old.id, overlap_ms=60_000)

    assert (new.name, new.rights, new.family) == (old.name, old.rights, old.id)
    assert await credentials.authenticate(old_secret.token)
    assert await credentials.authenticate(new_secret.token)
    clock.advance(ms=60_000)
    assert await credentials.authenticate(old_secret.token) is None
    assert await credentials.authenticate(new_secret.token)


async def test_at_most_two_keys_of_family_are_live(credentials, clock):
    first, _ = await credentials.create(ADMIN, CREATED)
    second, _ = await credentials.rotate(ADMIN, first.id)

    for credential_id in (first.id, second.id):
        with pytest.raises(KeyRefused, match="Revoke one"):
            await credentials.rotate(ADMIN, credential_id)
    third, _ = await credentials.rotate(ADMIN, second.id, overlap_ms=0)
    await credentials.revoke(ADMIN, first.id)
    fourth, _ = await credentials.rotate(ADMIN, third.id)

    assert await credentials.find(second.id) is None
    assert all([await credentials.find(one.id) for one in (third, fourth)])


async def test_concurrent_rotations_have_one_winner(credentials, other):
    issued, _ = await credentials.create(ADMIN, CREATED)

    outcomes = await asyncio.gather(
        *(engine.rotate(ADMIN, issued.id) for engine in (credentials, other) for _ in range(5)),
        return_exceptions=True,
    )

    assert sum(isinstance(one, KeyRefused) for one in outcomes) == 9
    live = [one for one in (await credentials.page(ADMIN))[0] if one.revoked_at_ms is None]
    assert len(live) == 2


async def test_rotated_expiring_key_keeps_its_lifetime(credentials, clock):
    rights = replace(PRODUCER, expires_at_ms=clock.now_ms() + 100_000)
    issued, _ = await credentials.create(ADMIN, replace(CREATED, rights=rights))
    clock.advance(ms=60_000)

    new, _ = await credentials.rotate(ADMIN, issued.id)

    assert new.rights.expires_at_ms == clock.now_ms() + 100_000
    old = await credentials.get(ADMIN, issued.id)
    assert old.rights.expires_at_ms == rights.expires_at_ms


async def test_rotation_overlap_is_bounded(credentials):
    issued, _ = await credentials.create(ADMIN, CREATED)

    for overlap_ms in (-1, limits.CREDENTIAL_OVERLAP_MS_MAX + 1):
        with pytest.raises(ValidationFailed):
            await credentials.rotate(ADMIN, issued.id, overlap_ms)
