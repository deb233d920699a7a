"""Tickets and sessions, which a browser uses in place of its API key.

    principal ── ask ──▶ ticket ── redeem, once, within half a minute ──▶ a socket with the principal's rights
    API key ── log in ──▶ session ── idle too long, too old, logged out, key ended ──▶ nothing

Their tokens are random and stored as digests. Neither outlives the credential that it was made from.
"""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace
from sqlalchemy.exc import IntegrityError

from storage.access.credential_cache import CredentialCache, authentication_cache
from storage.concurrency.batcher import Batcher
from storage.concurrency.last_used import LastUsedWriter
from storage.domain import limits
from storage.domain.access.credentials import (
    SESSION_PREFIX,
    TICKET_PREFIX,
    Credential,
    CredentialKind,
    digest_of,
    is_token,
    new_token,
)
from storage.domain.access.permissions import Policy, Principal
from storage.domain.clock import Clock
from storage.postgres.database import Database
from storage.postgres.listener import Listener
from storage.postgres.repositories.sessions import BrowserSession, SessionRows, Ticket, TicketRows


class NewSession(msgspec.Struct, frozen=True):
    """A new session: its token is shown once.

    `ends_at_ms`: however much it is used.
    """

    token: str
    credential: Credential
    ends_at_ms: int

    def __repr__(self) -> str:
        return f"NewSession({self.credential!r})"


class _CachedSession(msgspec.Struct, frozen=True):
    session: BrowserSession | None


class SessionStore:
    """Issuer and verifier of tickets and sessions.

    Every method raises StorageUnavailable or StorageBusy.
    """

    def __init__(
        self, database: Database, credentials: CredentialCache, listener: Listener, clock: Clock
    ) -> None:
        self._tickets = TicketRows(database)
        self._sessions = SessionRows(database)
        self._credentials = credentials
        self._clock = clock
        self._uses = LastUsedWriter(self._sessions.note_uses, clock)
        backlog_max = limits.CREDENTIAL_BACKLOG_MAX
        self._redeeming: Batcher[bytes, Ticket | None] = Batcher(
            self._redeem_many, batch_max=limits.CREDENTIAL_BATCH_IDS_MAX, backlog_max=backlog_max
        )
        self._reads: Batcher[bytes, BrowserSession | None] = Batcher(
            self._read_many, batch_max=limits.CREDENTIAL_BATCH_IDS_MAX, backlog_max=backlog_max
        )
        self._cache = authentication_cache(self._read, listener, clock)
        self.invalidate = self._cache.invalidate
        self.invalidate_all = self._cache.invalidate_all
        self.flush_uses = self._uses.flush
        """Write when sessions were last used, as recorded in this process."""

    # Tickets

    async def make_ticket(self, by: Principal) -> tuple[str, int] | None:
        """Return a ticket with the permissions of `by`, and its expiry.

        None if the caller's credential no longer exists. Raises OutcomeUnknown.
        """
        token, now_ms = new_token(TICKET_PREFIX), self._clock.now_ms()
        ticket = Ticket(
            credential_id=by.credential or None,
            name=by.name,
            namespace=by.namespace,
            grants=by.policy.grants,
            rates=by.rates,
            ends_at_ms=by.expires_ms,
        )
        try:
            await self._tickets.insert(digest_of(token), ticket, now_ms)
        except IntegrityError:
            return None
        return token, now_ms + limits.TICKET_MS

    async def redeem_ticket(self, token: str) -> Credential | None:
        """Return the credential that requested the ticket, in the namespace of the request.

        None if the ticket is not valid, or no longer.
        """
        if not is_token(token, TICKET_PREFIX):
            return None
        ticket = await self._redeeming.submit(digest_of(token))
        if ticket is None:
            return None
        if ticket.credential_id is None:
            return _credential_of(ticket)
        requester = await self._credentials.fresh(ticket.credential_id)
        if requester is None:
            return None
        ends_ms = _min_expiry(requester.expires_ms, ticket.ends_at_ms)
        return replace(
            _without_secrets(requester),
            namespace=ticket.namespace,
            all_namespaces=False,
            expires_ms=ends_ms,
        )

    async def _redeem_many(self, digests: Sequence[bytes]) -> list[Ticket | None]:
        """Redeem tickets; of concurrent callers with the same ticket, the first gets it."""
        tickets = await self._tickets.redeem(list(set(digests)), self._clock.now_ms())
        return [tickets.pop(digest, None) for digest in digests]

    # Sessions

    async def log_in(self, token: str) -> NewSession | None:
        """Start a session for this API key; None if it is not a live key.

        Raises OutcomeUnknown.
        """
        credential = await self._credentials.authenticate(token)
        if credential is None:
            return None
        session_token, now_ms = new_token(SESSION_PREFIX), self._clock.now_ms()
        await self._sessions.insert(digest_of(session_token), credential.id, now_ms)
        self._credentials.used(credential.id)
        ends_ms = _min_expiry(credential.expires_ms, now_ms + limits.SESSION_MS_MAX)
        return NewSession(session_token, credential, ends_ms)

    async def find_session(self, token: str) -> Credential | None:
        """Return the API key that logged in; None if the session ended or never existed."""
        if not is_token(token, SESSION_PREFIX):
            return None
        digest, now_ms = digest_of(token), self._clock.now_ms()
        session = (await self._cache.get(digest)).session
        if session is None or not session.is_live(now_ms):
            return None
        credential = await self._credentials.find(session.credential_id)
        if credential is None:
            return None
        self._uses.touch(digest)
        ends_ms = _min_expiry(credential.expires_ms, session.ends_at_ms)
        return replace(_without_secrets(credential), expires_ms=ends_ms)

    async def log_out(self, token: str) -> None:
        """End the session, if it exists.

        Raises OutcomeUnknown.
        """
        if is_token(token, SESSION_PREFIX):
            digest = digest_of(token)
            try:
                await self._sessions.delete(digest)
            finally:
                self.invalidate(digest)

    async def close(self) -> None:
        """Stop the work in progress, and write when sessions were last used."""
        await self._cache.close()
        await self._reads.close()
        await self._redeeming.close()
        await self._uses.close()

    async def _read(self, digest: bytes) -> _CachedSession:
        return _CachedSession(await self._reads.submit(digest))

    async def _read_many(self, digests: Sequence[bytes]) -> list[BrowserSession | None]:
        by_digest = await self._sessions.find(digests)
        return [by_digest.get(digest) for digest in digests]


def _credential_of(ticket: Ticket) -> Credential:
    return Credential(
        id="",
        kind=CredentialKind.TOKEN,
        name=ticket.name,
        namespace=ticket.namespace,
        policy=Policy(ticket.grants),
        rates=ticket.rates,
        expires_ms=ticket.ends_at_ms,
    )


def _without_secrets(credential: Credential) -> Credential:
    """Remove the secrets of a credential that stays in memory while a socket is open.

    The caller was authenticated by the ticket.
    """
    return replace(credential, digest=b"", secret=b"")


def _min_expiry(one_ms: int, other_ms: int) -> int:
    """Return the sooner of two expiry times, of which 0 is never."""
    return min(one_ms or other_ms, other_ms or one_ms)
