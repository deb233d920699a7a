"""The namespaces: tenants with names, an account and quotas of their own.

Every process knows them all, since every call asks about one. What it knows is a table that is read whole: at the
start, when a change is announced, when announcements were missed, and every minute whatever was heard. While Postgres
is away the last table stands.
"""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress

from msgspec.structs import replace

from storage.concurrency.tasks import end
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import (
    InvalidCursor,
    MillstreamError,
    NamespaceInUse,
    NamespaceNotFound,
    PreconditionFailed,
    QuotaReached,
    ValidationFailed,
)
from storage.domain.names import DEFAULT_NAMESPACE, check_name
from storage.domain.quotas import Namespace, Quotas
from storage.postgres.repositories.namespaces import NamespaceRows

logger = logging.getLogger(__name__)


class Namespaces:
    """The namespaces of a deployment, and the one place that changes them.

    Versions count from 1 and are those of the quotas; `if_match` is as in the catalog. Every method that is awaited
    raises StorageUnavailable or StorageBusy when Postgres does not serve; one that changes something raises
    OutcomeUnknown when it may have.
    """

    def __init__(self, rows: NamespaceRows, clock: Clock) -> None:
        self._rows = rows
        self._clock = clock
        self.table: Mapping[str, Namespace] = {}
        """Every namespace that this process knows, by name. Another object whenever something has changed."""
        self.on_change: list[Callable[[], None]] = []
        """Called after the table has become another one."""
        self._stale = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # What this process knows

    async def find(self, name: str) -> Namespace:
        """The namespace, from the table if it is there. Raises NamespaceNotFound."""
        if name not in self.table:
            await self.read_again()
        found = self.table.get(name)
        if found is None:
            raise NamespaceNotFound(f"There is no namespace '{name}'.", namespace=name)
        return found

    def drop_all(self) -> None:
        """Something has changed, or may have: the table is read again soon."""
        self._stale.set()

    async def read_again(self) -> None:
        """Read the table, by a read that began after this call; callers at one time share it."""
        if self._reading is not None:
            await asyncio.wait([self._reading])
        if self._reading is None:
            self._reading = asyncio.create_task(self._read())
            self._tasks.add(self._reading)
            self._reading.add_done_callback(self._read_is_over)
        await asyncio.shield(self._reading)

    def _read_is_over(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        self._reading = None
        if not task.cancelled():
            task.exception()  # whoever waited has seen it

    async def _read(self) -> None:
        table = {namespace.name: namespace for namespace in await self._rows.all()}
        if table != self.table:
            self.table = table
            for tell in self.on_change:
                tell()

    async def keep_up(self) -> None:
        """Read the table whenever it may be old, until cancelled."""
        age_s = limits.NAMESPACES_AGE_MS_MAX / limits.SECOND_MS
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(age_s):
                    await self._stale.wait()
            self._stale.clear()
            try:
                await self.read_again()
            except MillstreamError as error:
                logger.warning("namespaces were not read: %s", error.detail)
                await asyncio.sleep(limits.NAMESPACES_RETRY_MS / limits.SECOND_MS)
                self._stale.set()

    async def close(self) -> None:
        """End the read that is under way."""
        await end(*self._tasks)

    # What is stored

    async def put(
        self,
        name: str,
        quotas: Quotas,
        *,
        if_match: int | None = None,
        create_only: bool = False,
    ) -> tuple[Namespace, bool]:
        """Make the namespace, or replace its quotas; the namespace, and whether it was made. Equal quotas change nothing.

        Raises ValidationFailed, PreconditionFailed, QuotaReached where there are as many as a process can know.
        """
        _check_namespace_name(name)
        quotas.check()
        async with self._rows.held(name) as held:
            _check_version(held.namespace, if_match)
            if held.namespace is None:
                stored, created = self._new(name, quotas), True
                if not await held.insert(stored, limits.NAMESPACES_MAX):
                    raise QuotaReached(f"There are {limits.NAMESPACES_MAX} namespaces already.")
            elif create_only:
                raise PreconditionFailed(f"The namespace '{name}' exists already.")
            else:
                stored, created = self._changed(held.namespace, quotas), False
                if stored is not held.namespace:
                    await held.update(stored)
        await self._hear_of_own()
        return stored, created

    async def get(self, name: str) -> Namespace:
        """The namespace as Postgres has it now. Raises NamespaceNotFound."""
        await self.read_again()
        return await self.find(name)

    async def delete(self, name: str, *, if_match: int | None = None) -> None:
        """Delete an empty namespace. Raises NamespaceNotFound, PreconditionFailed; NamespaceInUse, which says what is
        in it."""
        if name == DEFAULT_NAMESPACE:
            raise NamespaceInUse("The namespace 'default' cannot be deleted.")
        async with self._rows.held(name) as held:
            if held.namespace is None:
                raise NamespaceNotFound(f"There is no namespace '{name}'.", namespace=name)
            _check_version(held.namespace, if_match)
            if left := await held.holds():
                told = ", ".join(
                    f"{count} {noun.replace('_', ' ')}" for noun, count in left.items()
                )
                raise NamespaceInUse(f"The namespace is not empty: {told}.", holds=dict(left))
            await held.delete()
        await self._hear_of_own()

    async def list(
        self, *, prefix: str = "", after: str = "", limit: int = limits.PAGE_ITEMS_DEFAULT
    ) -> list[Namespace]:
        """Namespaces whose names begin with `prefix`, by name, strictly after `after`; at most 1000."""
        if not (after.isascii() and (not after or after.isprintable())):
            raise InvalidCursor
        if not (prefix.isascii() and (not prefix or prefix.isprintable())):
            return []
        return await self._rows.page(prefix, after, max(1, min(limit, limits.PAGE_ITEMS_MAX)))

    async def weigh(self, namespace: Namespace, stored_bytes: int) -> None:
        """For the sweep: note what a namespace holds; once it is too much, it is sent nothing more."""
        most = namespace.quotas.stored_bytes_max
        over = most is not None and stored_bytes > most
        await self._rows.weigh(namespace.name, stored_bytes, over)

    async def _hear_of_own(self) -> None:
        """A change shows in this process when its call returns; elsewhere a moment later."""
        try:
            await self.read_again()
        except MillstreamError:
            self.drop_all()  # it stands all the same

    def _new(self, name: str, quotas: Quotas) -> Namespace:
        now_ms = self._clock.now_ms()
        account_id = str(10**11 + secrets.randbelow(9 * 10**11))
        return Namespace(name, account_id, quotas, 1, now_ms, now_ms)

    def _changed(self, before: Namespace, quotas: Quotas) -> Namespace:
        if quotas == before.quotas:
            return before
        limited = quotas.stored_bytes_max is not None
        held = before.stored_bytes if limited else None
        return replace(
            before,
            quotas=quotas,
            version=before.version + 1,
            changed_at_ms=max(self._clock.now_ms(), before.changed_at_ms),
            stored_bytes=held,
            over=held is not None and held > (quotas.stored_bytes_max or 0),
        )


def _check_namespace_name(name: str) -> None:
    """Raise ValidationFailed unless a namespace can have the name: folders of the archive that begin with _ are ours."""
    check_name(name)
    if name.startswith("_"):
        raise ValidationFailed.at("/name", "A namespace does not begin with _", "invalid_name")


@asynccontextmanager
async def running(namespaces: Namespaces) -> AsyncGenerator[Namespaces]:
    """The namespaces, kept up to date while the block runs."""
    try:
        await namespaces.read_again()
    except MillstreamError:
        namespaces.drop_all()
    task = asyncio.create_task(namespaces.keep_up(), name="namespaces")
    try:
        yield namespaces
    finally:
        await end(task)
        await namespaces.close()


def _check_version(found: Namespace | None, if_match: int | None) -> None:
    if if_match is None:
        return
    if found is None:
        raise PreconditionFailed("There is nothing that could have this version.")
    if found.version != if_match:
        raise PreconditionFailed(
            f"The version is {found.version}, not {if_match}.", version=found.version
        )
