"""Repository of tickets and sessions, by the digests of their tokens.

A credential is exchanged for either.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import Row, delete, insert
from sqlmodel import col

from storage.domain import limits
from storage.domain.access.permissions import Grant
from storage.domain.quotas import Rates
from storage.postgres.queries import query
from storage.postgres.repositories.credentials import announce, grants_of, rates_of
from storage.postgres.repository import Repository
from storage.postgres.rows import rows_of, struct_of
from storage.postgres.tables import SessionRow, TicketRow

_SESSION = "session:"


class Ticket(msgspec.Struct, frozen=True):
    """Requester of a ticket, and the ticket's permissions.

    `ends_at_ms`: expiry of the requester's own credential, 0: never.
    """

    credential_id: str | None
    name: str
    namespace: str
    grants: tuple[Grant, ...]
    rates: Rates | None
    ends_at_ms: int


class BrowserSession(msgspec.Struct, frozen=True):
    """Session of a browser that logged in."""

    credential_id: str
    created_at_ms: int
    used_at_ms: int

    def is_live(self, now_ms: int) -> bool:
        """Return whether it is neither idle for too long nor too old."""
        return now_ms < min(self.used_at_ms + limits.SESSION_IDLE_MS, self.ends_at_ms)

    @property
    def ends_at_ms(self) -> int:
        """Expiry of the session regardless of use."""
        return self.created_at_ms + limits.SESSION_MS_MAX


class TicketRows(Repository):
    """Unredeemed tickets.

    Every method raises StorageUnavailable, StorageBusy, OutcomeUnknown.
    """

    async def insert(self, digest: bytes, ticket: Ticket, now_ms: int) -> None:
        """Insert a ticket, and delete some expired ones."""
        values = msgspec.structs.asdict(ticket) | {
            "digest": digest,
            "grants": msgspec.to_builtins(ticket.grants),
            "rates": msgspec.to_builtins(ticket.rates),
            "expires_at_ms": now_ms + limits.TICKET_MS,
        }
        expired = {"now_ms": now_ms, "limit": limits.EXPIRED_CREDENTIALS_PER_CALL}
        async with self._database.writing() as session:
            await session.execute(query("forget_tickets"), expired)
            await session.execute(insert(TicketRow).values(**values))

    async def redeem(self, digests: Sequence[bytes], now_ms: int) -> dict[bytes, Ticket]:
        """Return and delete the tickets of these digests: each can be redeemed once."""
        parameters = {"digests": list(digests), "now_ms": now_ms}
        async with self._database.writing() as session:
            rows = await session.execute(query("redeem_tickets"), parameters)
            return {row.digest: _ticket(row) for row in rows}


class SessionRows(Repository):
    """Sessions of browsers. Every method raises StorageUnavailable or StorageBusy."""

    async def insert(self, digest: bytes, credential_id: str, now_ms: int) -> None:
        """Insert a session, and delete some expired ones. Raises OutcomeUnknown."""
        values = {
            "digest": digest,
            "credential_id": credential_id,
            "created_at_ms": now_ms,
            "used_at_ms": now_ms,
        }
        expired = {
            "used_before_ms": now_ms - limits.SESSION_IDLE_MS,
            "created_before_ms": now_ms - limits.SESSION_MS_MAX,
            "limit": limits.EXPIRED_CREDENTIALS_PER_CALL,
        }
        async with self._database.writing() as session:
            await session.execute(query("forget_sessions"), expired)
            await session.execute(insert(SessionRow).values(**values))

    async def find(self, digests: Sequence[bytes]) -> dict[bytes, BrowserSession]:
        """Return the existing sessions of these digests."""
        statement = rows_of(SessionRow).where(col(SessionRow.digest).in_(digests))
        async with self._database.reading() as session:
            return {
                row.digest: BrowserSession(row.credential_id, row.created_at_ms, row.used_at_ms)
                for row in await session.execute(statement)
            }

    async def delete(self, digest: bytes) -> None:
        """Delete a session. Raises OutcomeUnknown."""
        async with self._database.writing() as session:
            await session.execute(delete(SessionRow).where(col(SessionRow.digest) == digest))
            await announce(session, session_payload(digest))

    async def note_uses(self, used_at_ms: Mapping[bytes, int]) -> None:
        """Store when sessions were last used."""
        values = {"digests": list(used_at_ms), "used_at_ms": list(used_at_ms.values())}
        async with self._database.autocommitting() as session:
            await session.execute(query("note_session_uses"), values)


def _ticket(row: Row[Any]) -> Ticket:
    return struct_of(Ticket, row, grants=grants_of(row.grants), rates=rates_of(row.rates))


def session_payload(digest: bytes) -> str:
    """Return the announcement of a session."""
    return f"{_SESSION}{digest.hex()}"


def announced_session(payload: str) -> bytes | None:
    """Return the digest of an announced session; None for a credential."""
    if not payload.startswith(_SESSION):
        return None
    return bytes.fromhex(payload.removeprefix(_SESSION))
