"""The namespaces: tenants with their own names, account and quotas.

Every process has all of them in memory, since every call needs one, in a table that is read whole: at the
start, when a change is announced, when announcements were missed, and every minute in any case. While Postgres
is unreachable the last table stands.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Unpack

from msgspec.structs import replace

from storage.catalog.definition_store import DefinitionRules, DefinitionStore
from storage.concurrency.periodic import periodic
from storage.concurrency.single_flight import SingleFlight
from storage.concurrency.tasks import in_background
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.definitions import Put, PutOptions
from storage.domain.errors import (
    MillstreamError,
    NamespaceInUse,
    NamespaceNotFound,
    ValidationFailed,
)
from storage.domain.names import DEFAULT_NAMESPACE, check_name
from storage.domain.quotas import Namespace, Quotas
from storage.postgres.definition_table import CHANNEL
from storage.postgres.listener import Listener
from storage.postgres.repositories.namespaces import NamespaceRows


class Namespaces:
    """The namespaces of a deployment, and the one place that changes them.

    Versions count from 1 and are those of the quotas; `if_match` is as in the catalog. Every method that is awaited
    raises StorageUnavailable or StorageBusy when Postgres does not serve; one that changes something raises
    OutcomeUnknown when it may have.
    """

    def __init__(self, rows: NamespaceRows, listener: Listener, clock: Clock) -> None:
        self._rows = rows
        self._clock = clock
        self._store = DefinitionStore(rows, _RULES, clock)
        listener.subscribe(CHANNEL, self._on_change, self.invalidate_all)
        self.table: Mapping[str, Namespace] = {}
        """Every namespace, by name; replaced by another object whenever one has changed."""
        self.on_change: list[Callable[[], None]] = []
        """Called after the table was replaced."""
        self._stale = asyncio.Event()
        self._reads = SingleFlight[str, None]()

    # Table in memory

    async def find(self, name: str) -> Namespace:
        """Return the namespace, from the table if possible.

        Raises NamespaceNotFound.
        """
        if name not in self.table:
            await self.read_again()
        namespace = self.table.get(name)
        if namespace is None:
            raise _not_found(name)
        return namespace

    def _on_change(self, payload: str) -> None:
        if payload.startswith(f"{self._rows.kind}:"):
            self.invalidate_all()

    def invalidate_all(self) -> None:
        """Have the table read again soon: a namespace has changed, or may have."""
        self._stale.set()

    async def read_again(self) -> None:
        """Read the table, by a read that began after this call; concurrent callers share it."""
        await self._reads.run_fresh("table", self._read)

    async def _read(self) -> None:
        table = {namespace.name: namespace for namespace in await self._rows.all()}
        if table != self.table:
            self.table = table
            for tell in self.on_change:
                tell()

    async def keep_up(self) -> None:
        """Read the table whenever it may be old, until cancelled."""
        await periodic(
            limits.NAMESPACES_AGE_MS_MAX / limits.SECOND_MS,
            self.read_again,
            "namespaces",
            wake=self._stale,
            delay_first=True,
            retry_s=limits.NAMESPACES_RETRY_MS / limits.SECOND_MS,
        )

    async def close(self) -> None:
        """Stop the read in progress."""
        await self._reads.close()

    # Stored namespaces

    async def put(self, name: str, quotas: Quotas, **options: Unpack[PutOptions]) -> Put[Namespace]:
        """Create the namespace or replace its quotas.

        Equal quotas change nothing. Raises ValidationFailed, PreconditionFailed, QuotaReached if there are as many as a process
        can have in memory.
        """
        _check_namespace_name(name)
        put = await self._store.put(name, quotas, **options)
        if not options.get("dry_run"):
            await self._apply_local_change()
        return put

    async def get(self, name: str) -> Namespace:
        """Return the namespace as Postgres has it now.

        Raises NamespaceNotFound.
        """
        await self.read_again()
        return await self.find(name)

    async def delete(self, name: str, *, if_match: int | None = None) -> None:
        """Delete an empty namespace.

        Raises NamespaceNotFound, PreconditionFailed; NamespaceInUse, which names what is in it.
        """
        if name == DEFAULT_NAMESPACE:
            raise NamespaceInUse("The namespace 'default' cannot be deleted.")
        async with self._store.changing(name, if_match) as (locked, namespace):
            if left := await locked.holds():
                contents = ", ".join(
                    f"{count} {noun.replace('_', ' ')}" for noun, count in left.items()
                )
                raise NamespaceInUse(f"The namespace is not empty: {contents}.", holds=dict(left))
            await locked.delete(namespace, self._clock.now_ms())
        await self._apply_local_change()

    async def list(
        self, *, prefix: str = "", after: str = "", limit: int = limits.PAGE_ITEMS_DEFAULT
    ) -> list[Namespace]:
        """Return namespaces whose names begin with `prefix`, by name.

        Strictly after `after`; at most 1000.
        """
        return await self._store.page("", prefix=prefix, after=after, limit=limit)

    async def weigh(self, namespace: Namespace, stored_bytes: int) -> None:
        """Store a namespace's usage; once it is over its limit, nothing more may be added to it.

        For the sweeper.
        """
        most = namespace.quotas.stored_bytes_max
        over = most is not None and stored_bytes > most
        await self._rows.weigh(namespace.name, stored_bytes, over)

    async def _apply_local_change(self) -> None:
        """Read own changes, which this process sees when the call returns, others a moment later."""
        try:
            await self.read_again()
        except MillstreamError:
            self.invalidate_all()  # the change stands all the same


def _new_namespace(name: str, quotas: Quotas, now_ms: int) -> Namespace:
    account_id = str(10**11 + secrets.randbelow(9 * 10**11))
    return Namespace(name, account_id, quotas, 1, now_ms, now_ms)


def _with_quotas(before: Namespace, quotas: Quotas) -> Namespace:
    limited = quotas.stored_bytes_max is not None
    stored_bytes = before.stored_bytes if limited else None
    return replace(
        before,
        quotas=quotas,
        stored_bytes=stored_bytes,
        over_storage_quota=stored_bytes is not None
        and stored_bytes > (quotas.stored_bytes_max or 0),
    )


def _not_found(name: str) -> NamespaceNotFound:
    return NamespaceNotFound(f"Namespace '{name}' does not exist.", namespace=name)


_RULES: DefinitionRules[str, Quotas, Namespace] = DefinitionRules(
    create=_new_namespace, not_found=_not_found, with_spec=_with_quotas
)


def _check_namespace_name(name: str) -> None:
    """Raise ValidationFailed unless a namespace can have the name.

    Archive folders that begin with _ are reserved for Millstream.
    """
    check_name(name)
    if name.startswith("_"):
        raise ValidationFailed.at("/name", "A namespace name cannot start with _", "invalid_name")


@asynccontextmanager
async def running(namespaces: Namespaces) -> AsyncGenerator[Namespaces]:
    """Keep the namespaces up to date while the block runs."""
    try:
        await namespaces.read_again()
    except MillstreamError:
        namespaces.invalidate_all()
    try:
        async with in_background(namespaces.keep_up(), "namespaces"):
            yield namespaces
    finally:
        await namespaces.close()
