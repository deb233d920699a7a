"""Definition store shared by queues and streams: create, change, delete, list by name."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Generic, NamedTuple, TypeVar, cast

import msgspec
from msgspec.structs import replace

from storage.concurrency.batcher import Batcher
from storage.concurrency.definition_cache import DefinitionCache
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import (
    AlreadyExists,
    InvalidCursor,
    MillstreamError,
    PreconditionFailed,
)
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.queue import Queue, QueueSpec
from storage.domain.streams.stream import Stream, StreamSpec
from storage.postgres.listener import Listener
from storage.postgres.repositories.definitions import (
    EVERY_ONE,
    Definitions,
    LockedDefinition,
    Which,
)

N = TypeVar("N", bound=QueueName | StreamName)
S = TypeVar("S", bound=QueueSpec | StreamSpec)
D = TypeVar("D", bound=Queue | Stream)


P = TypeVar("P")


class Put(NamedTuple, Generic[P]):
    """Definition after a put, and the one that it replaced: None if it was created."""

    definition: P
    created: bool
    before: P | None


class DefinitionRules(NamedTuple, Generic[N, S, D]):
    """Rules that differ between queues and streams."""

    create: Callable[[N, S, int], D]
    refuse_change: Callable[[S, S], None]
    not_found: Callable[[N], MillstreamError]


class DefinitionStore(Generic[N, S, D]):
    """Catalog operations that queues and streams have in common."""

    def __init__(
        self,
        definitions: Definitions[N, D],
        rules: DefinitionRules[N, S, D],
        listener: Listener,
        clock: Clock,
    ) -> None:
        self._definitions = definitions
        self._rules = rules
        self._clock = clock
        self.kind = definitions.kind
        self._reads: Batcher[N, D] = Batcher(
            self._read_many,
            batch_max=limits.DEFINITION_BATCH_NAMES_MAX,
            backlog_max=limits.DEFINITION_BACKLOG_MAX,
        )
        self.cache = DefinitionCache(self._reads.submit, lambda: listener.listening, clock)

    async def put(
        self,
        name: N,
        spec: S,
        *,
        merge: Callable[[S], S],
        if_match: int | None,
        create_only: bool,
        dry_run: bool,
    ) -> Put[D]:
        """Store `spec` for a new name, and `merge` of the current specification otherwise."""
        spec.check()
        with self._invalidating(name):
            async with self._definitions.lock(name, dry_run=dry_run) as locked:
                current = locked.definition
                _check_version(current, if_match)
                if current is None:
                    return Put(await self._insert(locked, name, spec), True, None)
                if create_only:
                    raise AlreadyExists(self.kind, name.name, current)
                merged = merge(cast("S", current.spec))
                return Put(await self._update(locked, current, merged), False, current)

    async def change(self, name: N, change: Callable[[S], S], if_match: int | None) -> D:
        with self._invalidating(name):
            async with self._definitions.lock(name) as locked:
                current = self._existing(locked, name)
                _check_version(current, if_match)
                return await self._update(locked, current, change(cast("S", current.spec)))

    async def delete(self, name: N, if_match: int | None) -> D:
        with self._invalidating(name):
            async with self._definitions.lock(name) as locked:
                current = self._existing(locked, name)
                _check_version(current, if_match)
                await locked.delete(current, self._clock.now_ms())
                return current

    @asynccontextmanager
    async def changing(self, name: N) -> AsyncGenerator[tuple[LockedDefinition[D], D]]:
        """Lock a name and yield its definition, for changes beside the specification."""
        with self._invalidating(name):
            async with self._definitions.lock(name) as locked:
                yield locked, self._existing(locked, name)

    async def page(self, namespace: str, prefix: str, after: str, limit: int) -> list[D]:
        if not _could_name(after):
            raise InvalidCursor
        if not _could_name(prefix):
            return []
        limit = max(1, min(limit, limits.PAGE_ITEMS_MAX))
        return await self._definitions.page(namespace, prefix, after, limit)

    async def dead_letter_sources(self, target: QueueName, after: str, limit: int) -> list[D]:
        if not _could_name(after):
            raise InvalidCursor
        limit = max(1, min(limit, limits.PAGE_ITEMS_MAX))
        return await self._definitions.page_of_dead_letter_sources(target, after, limit)

    async def every(self, which: Which = EVERY_ONE) -> AsyncIterator[D]:
        page = await self._definitions.page_of_all(None, which)
        while page:
            for definition in page:
                yield definition
            page = await self._definitions.page_of_all(cast("N", page[-1].name), which)

    async def close(self) -> None:
        """Stop the reads in progress."""
        await self.cache.close()
        await self._reads.close()

    async def _read_many(self, names: Sequence[N]) -> list[D | MillstreamError]:
        """Read the definitions that were requested during the previous statement.

        If one of them cannot be decoded, such as that of a later version, the others are read without it.
        """
        try:
            by_name = await self._definitions.find_many(names)
        except msgspec.ValidationError:
            if len(names) == 1:
                raise
            halves = names[: len(names) // 2], names[len(names) // 2 :]
            return [one for half in halves for one in await self._read_half(half)]
        return [by_name.get(name) or self._rules.not_found(name) for name in names]

    async def _read_half(self, names: Sequence[N]) -> Sequence[D | MillstreamError]:
        try:
            return await self._read_many(names)
        except msgspec.ValidationError as error:
            return [error]  # type: ignore[list-item]

    def _existing(self, locked: LockedDefinition[D], name: N) -> D:
        if locked.definition is None:
            raise self._rules.not_found(name)
        return locked.definition

    async def _insert(self, locked: LockedDefinition[D], name: N, spec: S) -> D:
        created = self._rules.create(name, spec, self._clock.now_ms())
        await locked.insert(created)
        return created

    async def _update(self, locked: LockedDefinition[D], current: D, spec: S) -> D:
        """Store the next version, unless it is equal to the current one."""
        spec.check()
        self._rules.refuse_change(cast("S", current.spec), spec)
        if spec == current.spec:
            return current
        now_ms = max(self._clock.now_ms(), current.changed_at_ms)
        changed = replace(current, spec=spec, version=current.version + 1, changed_at_ms=now_ms)
        await locked.update(changed)
        return changed

    @contextmanager
    def _invalidating(self, name: N) -> Iterator[None]:
        """Invalidate the cached definition at the end, also if the change failed."""
        try:
            yield
        finally:
            self.cache.invalidate(name)


def _check_version(definition: Queue | Stream | None, if_match: int | None) -> None:
    if if_match is None:
        return
    if definition is None:
        raise PreconditionFailed("Nothing with this version exists.")
    if definition.version != if_match:
        raise PreconditionFailed(
            f"The current version is {definition.version}, not {if_match}.",
            version=definition.version,
        )


def _could_name(part: str) -> bool:
    """Return whether this could be a name: printable ASCII.

    Other text is invalid in Postgres, or sorts elsewhere.
    """
    return part.isascii() and (part == "" or part.isprintable())
