"""Repository of credentials. Secrets are passed as digests, or encrypted.

Changes are announced on `CHANNEL` in the same transaction: a credential by its id, a new one as "new:<id>", a session
as "session:<digest in hexadecimal>".
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from sqlalchemy import Row, Select, func, insert, or_, select, tuple_, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession
from sqlmodel import col

from storage.domain import limits
from storage.domain.access.credentials import CredentialKind, IssuedCredential, Rights
from storage.domain.access.permissions import Grant, Role
from storage.domain.errors import KeyRefused, NamespaceNotFound
from storage.domain.quotas import Rates
from storage.postgres.database import CHANGES_CATALOG
from storage.postgres.queries import query
from storage.postgres.repository import Repository
from storage.postgres.rows import rows_of, struct_of
from storage.postgres.tables import CredentialRow

CHANNEL = "millstream_credentials"

_NEW = "new:"

Place = tuple[str, str]
"""End of a page of credentials: a name and an id."""


class StoredCredential(msgspec.Struct, frozen=True):
    """A credential with the stored form of its secret."""

    issued: IssuedCredential
    digest: bytes | None = None
    sealed: bytes | None = None

    def __repr__(self) -> str:
        return f"StoredCredential({self.issued.id!r})"


class LockedFamily:
    """All credentials of one rotation family, locked against changes by others."""

    def __init__(self, session: AsyncSession, members: Sequence[StoredCredential]) -> None:
        self._session = session
        self.members = members

    def member(self, credential_id: str) -> IssuedCredential:
        """Return the credential of that id, which must be a member."""
        return next(stored.issued for stored in self.members if stored.issued.id == credential_id)

    async def insert(self, stored: StoredCredential) -> None:
        """Insert a credential."""
        await _insert(self._session, stored)

    async def update(self, issued: IssuedCredential) -> None:
        """Store a later version."""
        await self._session.execute(
            update(CredentialRow)
            .where(col(CredentialRow.id) == issued.id)
            .values(
                **_rights_values(issued.rights),
                version=issued.version,
                changed_at_ms=issued.changed_at_ms,
                revoked_at_ms=issued.revoked_at_ms,
            )
        )
        await announce(self._session, issued.id)


class CredentialRows(Repository):
    """Credentials of every namespace. Every method raises StorageUnavailable or StorageBusy."""

    async def live(self, ids: Sequence[str]) -> dict[str, StoredCredential]:
        """Return the credentials of these ids that are not revoked."""
        statement = _all().where(
            col(CredentialRow.id).in_(ids), col(CredentialRow.revoked_at_ms).is_(None)
        )
        async with self._database.reading() as session:
            return {row.id: _stored(row) for row in await session.execute(statement)}

    async def every_live(self, now_ms: int) -> AsyncIterator[StoredCredential]:
        """Yield the credentials that are neither revoked nor expired, by id, read page by page."""
        row, after = CredentialRow, ""
        live = or_(col(row.expires_at_ms).is_(None), col(row.expires_at_ms) > now_ms)
        statement = _all().where(col(row.revoked_at_ms).is_(None), live).order_by(col(row.id))
        while True:
            page = statement.where(col(row.id) > after).limit(limits.PAGE_ITEMS_MAX)
            async with self._database.reading() as session:
                rows = (await session.execute(page)).all()
            for record in rows:
                yield _stored(record)
            if len(rows) < limits.PAGE_ITEMS_MAX:
                return
            after = rows[-1].id

    async def find(self, credential_id: str) -> IssuedCredential | None:
        """Return a credential in any state, or None."""
        async with self._database.reading() as session:
            row = (await session.execute(_of(credential_id))).one_or_none()
            return None if row is None else _stored(row).issued

    async def insert(
        self, stored: StoredCredential, now_ms: int, *, only_first: bool = False
    ) -> bool:
        """Insert the first credential of a family.

        Credentials of its namespace that ended long enough ago are deleted. With `only_first`, nothing is inserted and False
        returned where anyone was given permissions everywhere before. Raises OutcomeUnknown, NamespaceNotFound, and KeyRefused
        where the namespace has its maximum.
        """
        issued = stored.issued
        try:
            async with self._database.writing() as session:
                lock = {"name": f"credentials:{issued.namespace}"}
                await session.execute(query("hold_name"), lock)
                if only_first and await _has_administrator(session):
                    return False
                await _enforce_active_limit(session, issued.namespace, now_ms)
                await _insert(session, stored)
                return True
        except IntegrityError:
            name = issued.namespace
            raise NamespaceNotFound(f"Namespace '{name}' does not exist.", namespace=name) from None

    @asynccontextmanager
    async def family_of(self, credential_id: str) -> AsyncGenerator[LockedFamily | None]:
        """Lock a credential's family until the block ends, which commits unless it raises.

        A credential never changes its family, so that it may be read before the family is locked. Raises OutcomeUnknown.
        """
        async with self._database.writing() as session:
            statement = select(col(CredentialRow.family)).where(
                col(CredentialRow.id) == credential_id
            )
            family = await session.scalar(statement)
            if family is None:
                yield None
                return
            await session.execute(query("hold_name"), {"name": f"credential:{family}"})
            rows = await session.execute(_all().where(col(CredentialRow.family) == family))
            yield LockedFamily(session, [_stored(row) for row in rows])

    async def page(
        self,
        namespace: str,
        *,
        all_namespaces: bool,
        name: str | None,
        after: Place | None,
        limit: int,
    ) -> list[IssuedCredential]:
        """Return a namespace's credentials by name, strictly after `after`.

        With `all_namespaces` also those of administrators of all namespaces.
        """
        row = CredentialRow
        of_namespace = (col(row.namespace) == namespace) & ~col(row.everywhere)
        statement = _all().where(
            or_(of_namespace, col(row.everywhere)) if all_namespaces else of_namespace
        )
        if name is not None:
            statement = statement.where(col(row.name) == name)
        if after is not None:
            statement = statement.where(tuple_(col(row.name), col(row.id)) > after)
        statement = statement.order_by(col(row.name), col(row.id)).limit(limit)
        async with self._database.reading() as session:
            return [_stored(record).issued for record in await session.execute(statement)]

    async def note_uses(self, used_at_ms: Mapping[str, int]) -> None:
        """Store when credentials were last used."""
        values = {
            "ids": list(used_at_ms),
            "used_at_ms": list(used_at_ms.values()),
            "apart_ms": limits.CREDENTIAL_USED_MS,
        }
        async with self._database.autocommitting() as session:
            await session.execute(query("note_uses"), values)


async def announce(session: AsyncSession, payload: str, *, is_new: bool = False) -> None:
    """Notify every process, once this transaction is committed.

    A new credential takes nothing away, and does not raise the catalog's version.
    """
    if not is_new:
        session.info[CHANGES_CATALOG] = True
    await session.execute(query("notify"), {"channel": CHANNEL, "payload": payload})


async def _has_administrator(session: AsyncSession) -> bool:
    statement = select(col(CredentialRow.id)).where(col(CredentialRow.everywhere)).limit(1)
    return await session.scalar(statement) is not None


async def _enforce_active_limit(session: AsyncSession, namespace: str, now_ms: int) -> None:
    forgotten = {
        "namespace": namespace,
        "ended_before_ms": now_ms - limits.CREDENTIAL_RETENTION_MS,
        "limit": limits.EXPIRED_CREDENTIALS_PER_CALL,
    }
    await session.execute(query("forget_credentials"), forgotten)
    row = CredentialRow
    live = select(func.count()).where(
        col(row.namespace) == namespace,
        col(row.revoked_at_ms).is_(None),
        or_(col(row.expires_at_ms).is_(None), col(row.expires_at_ms) > now_ms),
    )
    if (await session.scalar(live) or 0) >= limits.CREDENTIALS_MAX:
        raise KeyRefused(
            f"A namespace can have at most {limits.CREDENTIALS_MAX} active keys. Revoke unused keys."
        )


async def _insert(session: AsyncSession, stored: StoredCredential) -> None:
    issued = stored.issued
    values = {
        "id": issued.id,
        "kind": issued.kind.value,
        "name": issued.name,
        "namespace": issued.namespace,
        "everywhere": issued.all_namespaces,
        **_rights_values(issued.rights),
        "family": issued.family,
        "version": issued.version,
        "digest": stored.digest,
        "sealed": stored.sealed,
        "created_by": issued.created_by,
        "created_at_ms": issued.created_at_ms,
        "changed_at_ms": issued.changed_at_ms,
    }
    await session.execute(insert(CredentialRow).values(**values))
    await announce(session, f"{_NEW}{issued.id}", is_new=True)


def announced_new(payload: str) -> str | None:
    """Return the id of an announced new credential; None for anything else."""
    return payload.removeprefix(_NEW) if payload.startswith(_NEW) else None


def _rights_values(rights: Rights) -> dict[str, Any]:
    return {
        "roles": [role.value for role in rights.roles],
        "grants": msgspec.to_builtins(rights.grants),
        "rates": msgspec.to_builtins(rights.rates),
        "expires_at_ms": rights.expires_at_ms,
    }


def _all() -> Select[Any]:
    return rows_of(CredentialRow)


def _of(credential_id: str) -> Select[Any]:
    return _all().where(col(CredentialRow.id) == credential_id)


def _stored(row: Row[Any]) -> StoredCredential:
    rights = Rights(
        roles=tuple(Role(name) for name in row.roles),
        grants=grants_of(row.grants),
        rates=rates_of(row.rates),
        expires_at_ms=row.expires_at_ms,
    )
    kind, everywhere = CredentialKind(row.kind), row.everywhere
    issued = struct_of(IssuedCredential, row, kind=kind, all_namespaces=everywhere, rights=rights)
    return StoredCredential(issued, row.digest, row.sealed)


def grants_of(stored: Any) -> tuple[Grant, ...]:
    """Convert stored grants."""
    return msgspec.convert(stored, tuple[Grant, ...])


def rates_of(stored: Any) -> Rates | None:
    """Convert stored rates."""
    return msgspec.convert(stored, Rates | None)
