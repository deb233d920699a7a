"""In-process cache of credentials, with negative entries for ids that do not exist.

Checking a cached credential costs nothing. Entries are kept current like definitions
(`storage.concurrency.definition_cache`), with a shorter age. A client that tries ids at random shares one statement at a
time with all other ids that are not cached yet.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from contextlib import suppress
from typing import TypeVar

import msgspec

from storage.access.secret_box import SecretBox
from storage.concurrency.batcher import Batcher
from storage.concurrency.definition_cache import DefinitionCache
from storage.concurrency.last_used import LastUsedWriter
from storage.domain import limits
from storage.domain.access.credentials import Credential, CredentialKind, could_be_id, parse_key
from storage.domain.clock import Clock
from storage.domain.errors import SecretsOff, SecretUnreadable
from storage.postgres.listener import Listener
from storage.postgres.repositories.credentials import CredentialRows, StoredCredential

K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=msgspec.Struct)

_NO_CREDENTIAL = Credential(id="", kind=CredentialKind.KEY, name="nobody")


class CachedCredential(msgspec.Struct, frozen=True):
    """A cached id: its credential, or None if the id does not exist."""

    credential: Credential | None


def authentication_cache(
    read: Callable[[K], Awaitable[V]], listener: Listener, clock: Clock
) -> DefinitionCache[K, V]:
    """Return a cache of what authenticates callers, current while announcements arrive."""
    return DefinitionCache(
        read,
        lambda: listener.listening,
        clock,
        limits.CREDENTIALS_CACHED_MAX,
        limits.CREDENTIAL_AGE_MS_MAX,
        is_vouched=lambda: listener.is_vouched,
    )


class CredentialCache:
    """Live credentials by their ids.

    Methods that wait raise StorageUnavailable or StorageBusy.
    """

    def __init__(
        self, rows: CredentialRows, listener: Listener, clock: Clock, box: SecretBox
    ) -> None:
        self._rows = rows
        self._clock = clock
        self._box = box
        self._uses = LastUsedWriter(rows.note_uses, clock)
        self.used = self._uses.touch
        """Record that the credential of an id authenticated a caller now."""
        self.flush_uses = self._uses.flush
        """Write when credentials were last used, as recorded in this process."""
        self._reads: Batcher[str, StoredCredential | None] = Batcher(
            self._read_many,
            batch_max=limits.CREDENTIAL_BATCH_IDS_MAX,
            backlog_max=limits.CREDENTIAL_BACKLOG_MAX,
        )
        self._cache = authentication_cache(self._read, listener, clock)
        self.entry = self._cache.entry
        """Return the cache entry of an id, with its own expiry; a credential may expire before that."""
        self.invalidate = self._cache.invalidate
        self.invalidate_all = self._cache.invalidate_all

    def note_new(self, credential_id: str) -> None:
        """Have a new credential cached soon; until now its id may have been unknown."""
        entry = self._cache.entry(credential_id)
        if entry is None:
            self._cache.note_new(credential_id)
        elif entry.value.credential is None:
            self.invalidate(credential_id)

    def cached(self, credential_id: str) -> Credential | None:
        """Return the credential if it is cached and live."""
        entry = self._cache.get_cached(credential_id)
        if entry is None:
            return None
        credential = entry.credential
        return self._live(entry) if credential is not None and credential.expires_ms else credential

    async def find(self, credential_id: str) -> Credential | None:
        """Return the credential if it is live.

        Raises SecretUnreadable.
        """
        if not could_be_id(credential_id):
            return None
        return self._live(await self._cache.get(credential_id))

    async def fresh(self, credential_id: str) -> Credential | None:
        """Return the credential if it is live, by a read that began after this call.

        Raises SecretUnreadable.
        """
        return self._live(await self._cache.fresh(credential_id))

    async def authenticate(self, token: str) -> Credential | None:
        """Return the live API key that this token is; None does not reveal what is wrong."""
        parsed = parse_key(token)
        if parsed is None:
            return None
        key_id, secret = parsed
        credential = await self.find(key_id)
        return credential if (credential or _NO_CREDENTIAL).is_verified_by(secret) else None

    async def keep_warm(self) -> None:
        """Keep every credential that may be live cached, until cancelled."""
        await self._cache.keep_warm(self._read_all)

    async def _read_all(self) -> AsyncIterator[tuple[str, CachedCredential]]:
        async for stored in self._rows.every_live(self._clock.now_ms()):
            with suppress(SecretsOff, SecretUnreadable):
                yield stored.issued.id, CachedCredential(self._opened(stored))

    async def close(self) -> None:
        """Stop the reads in progress, and write when credentials were last used."""
        await self._cache.close()
        await self._reads.close()
        await self._uses.close()

    def _live(self, entry: CachedCredential) -> Credential | None:
        credential = entry.credential
        return (
            credential
            if credential is not None and credential.is_live(self._clock.now_ms())
            else None
        )

    async def _read(self, credential_id: str) -> CachedCredential:
        stored = await self._reads.submit(credential_id)
        return CachedCredential(None if stored is None else self._opened(stored))

    async def _read_many(self, ids: Sequence[str]) -> list[StoredCredential | None]:
        by_id = await self._rows.live(ids)
        return [by_id.get(credential_id) for credential_id in ids]

    def _opened(self, stored: StoredCredential) -> Credential:
        secret = b""
        if stored.sealed is not None:
            secret = self._box.decrypt(stored.sealed, stored.issued.id)
        return Credential.of(stored.issued, digest=stored.digest or b"", secret=secret)
