"""Credentials kept in the process, so that checking one costs nothing; ids that nobody has are kept as well.

What keeps them true is what keeps definitions so (`storage.concurrency.definition_cache`), with a shorter age. Whoever tries ids
at random shares one statement at a time with all others that are not known yet.
"""

from collections.abc import Sequence

import msgspec

from storage.access.secret_box import SecretBox
from storage.concurrency.batcher import Batcher
from storage.concurrency.definition_cache import DefinitionCache
from storage.concurrency.last_used import LastUsedWriter
from storage.domain import limits
from storage.domain.access.credentials import Credential, CredentialKind, could_be_id, parse_key
from storage.domain.clock import Clock
from storage.postgres.listener import Listener
from storage.postgres.repositories.credentials import CredentialRows, StoredCredential

_NOBODY = Credential(id="", kind=CredentialKind.KEY, name="nobody")


class CachedCredential(msgspec.Struct, frozen=True):
    """What is known of an id: who has it, or that nobody does."""

    credential: Credential | None


class CredentialCache:
    """Live credentials by their ids. Methods that wait raise StorageUnavailable or StorageBusy."""

    def __init__(
        self, rows: CredentialRows, listener: Listener, clock: Clock, box: SecretBox
    ) -> None:
        self._rows = rows
        self._clock = clock
        self._box = box
        self._uses = LastUsedWriter(rows.note_uses, clock)
        self.used = self._uses.note
        """The credential of an id proved who is calling, now."""
        self._asks: Batcher[str, StoredCredential | None] = Batcher(
            self._read_many,
            asks_max=limits.CREDENTIAL_ASKS_MAX,
            backlog_max=limits.CREDENTIAL_BACKLOG_MAX,
        )
        self._cache: DefinitionCache[str, CachedCredential] = DefinitionCache(
            self._read,
            lambda: listener.listening,
            clock,
            limits.CREDENTIALS_CACHED_MAX,
            limits.CREDENTIAL_AGE_MS_MAX,
        )
        self.kept = self._cache.kept
        """What is kept of an id, which says by itself when it ends; a credential may expire before that."""

    def cached(self, credential_id: str) -> Credential | None:
        """The credential, if it is known already, and live."""
        known = self._cache.peek(credential_id)
        if known is None:
            return None
        found = known.credential
        return self._live(known) if found is not None and found.expires_ms else found

    async def find(self, credential_id: str) -> Credential | None:
        """The credential if it is live. Raises SecretUnreadable."""
        if not could_be_id(credential_id):
            return None
        return self._live(await self._cache.get(credential_id))

    async def fresh(self, credential_id: str) -> Credential | None:
        """The same, by a read that began after this call."""
        return self._live(await self._cache.fresh(credential_id))

    async def proved(self, word: str) -> Credential | None:
        """The live API key that this word is, whole and right; None tells nothing of what is wrong."""
        parsed = parse_key(word)
        if parsed is None:
            return None
        key_id, secret = parsed
        found = await self.find(key_id)
        return found if (found or _NOBODY).is_proved_by(secret) else None

    async def flush_uses(self) -> None:
        """Write when credentials were last used, as far as it is noted here."""
        await self._uses.flush()

    def drop(self, credential_id: str) -> None:
        """Forget what is known of it."""
        self._cache.drop(credential_id)

    def drop_all(self) -> None:
        """Forget everything."""
        self._cache.drop_all()

    async def close(self) -> None:
        """End the reads that are under way, and write what was used."""
        await self._cache.close()
        await self._asks.close()
        await self._uses.close()

    def _live(self, known: CachedCredential) -> Credential | None:
        found = known.credential
        return found if found is not None and found.is_live(self._clock.now_ms()) else None

    async def _read(self, credential_id: str) -> CachedCredential:
        stored = await self._asks.ask(credential_id)
        return CachedCredential(None if stored is None else self._opened(stored))

    async def _read_many(self, ids: Sequence[str]) -> list[StoredCredential | None]:
        found = await self._rows.live(ids)
        return [found.get(credential_id) for credential_id in ids]

    def _opened(self, stored: StoredCredential) -> Credential:
        secret = b""
        if stored.sealed is not None:
            secret = self._box.open(stored.sealed, stored.issued.id)
        return Credential.of(stored.issued, digest=stored.digest or b"", secret=secret)
