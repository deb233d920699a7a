"""What the catalog does alike for queues and streams: create, change, delete and list definitions by name."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Generic, NamedTuple, TypeVar, cast

from msgspec.structs import replace

from storage.concurrency.definition_cache import DefinitionCache
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.errors import InvalidCursor, MillstreamError, PreconditionFailed
from storage.domain.names import QueueName, StreamName
from storage.domain.queues.queue import Queue, QueueSpec
from storage.domain.streams.stream import Stream, StreamSpec
from storage.postgres.listener import Listener
from storage.postgres.repositories.definitions import EVERY_ONE, Definitions, Held, Which

N = TypeVar("N", bound=QueueName | StreamName)
S = TypeVar("S", bound=QueueSpec | StreamSpec)
D = TypeVar("D", bound=Queue | Stream)


class Kind(NamedTuple, Generic[N, S, D]):
    """What differs between queues and streams, as far as the catalog's rules go."""

    create: Callable[[N, S, int], D]
    refuse_change: Callable[[S, S], None]
    not_found: Callable[[N], MillstreamError]


class Shelf(Generic[N, S, D]):
    """Everything the catalog does alike for queues and streams."""

    def __init__(
        self,
        definitions: Definitions[N, D],
        rules: Kind[N, S, D],
        listener: Listener,
        clock: Clock,
    ) -> None:
        self._definitions = definitions
        self._rules = rules
        self._clock = clock
        self.kind = definitions.kind
        self.cache = DefinitionCache(self._read, lambda: listener.listening, clock)

    async def put(
        self, name: N, spec: S, if_match: int | None, create_only: bool
    ) -> tuple[D, bool]:
        spec.check()
        with self._dropping(name):
            async with self._definitions.held(name) as held:
                _check_version(held.definition, if_match)
                if held.definition is None:
                    return await self._insert(held, name, spec), True
                if create_only:
                    raise PreconditionFailed(f"The {self.kind} '{name.name}' exists already.")
                kept = held.definition.spec.annotations
                wanted = spec if spec.annotations else replace(spec, annotations=kept)
                return await self._update(held, held.definition, wanted), False

    async def change(self, name: N, change: Callable[[S], S], if_match: int | None) -> D:
        with self._dropping(name):
            async with self._definitions.held(name) as held:
                found = self._existing(held, name)
                _check_version(found, if_match)
                return await self._update(held, found, change(cast("S", found.spec)))

    async def delete(self, name: N, if_match: int | None) -> D:
        with self._dropping(name):
            async with self._definitions.held(name) as held:
                found = self._existing(held, name)
                _check_version(found, if_match)
                await held.delete(found, self._clock.now_ms())
                return found

    @asynccontextmanager
    async def changing(self, name: N) -> AsyncGenerator[tuple[Held[D], D]]:
        """What the name stands for, with nobody else changing it, for changes beside the specification."""
        with self._dropping(name):
            async with self._definitions.held(name) as held:
                yield held, self._existing(held, name)

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

    async def _read(self, name: N) -> D:
        found = await self._definitions.find(name)
        if found is None:
            raise self._rules.not_found(name)
        return found

    def _existing(self, held: Held[D], name: N) -> D:
        if held.definition is None:
            raise self._rules.not_found(name)
        return held.definition

    async def _insert(self, held: Held[D], name: N, spec: S) -> D:
        created = self._rules.create(name, spec, self._clock.now_ms())
        await held.insert(created)
        return created

    async def _update(self, held: Held[D], found: D, spec: S) -> D:
        """Store the next version, unless it says what the present one says."""
        spec.check()
        self._rules.refuse_change(cast("S", found.spec), spec)
        if spec == found.spec:
            return found
        now_ms = max(self._clock.now_ms(), found.changed_at_ms)
        changed = replace(found, spec=spec, version=found.version + 1, changed_at_ms=now_ms)
        await held.update(changed)
        return changed

    @contextmanager
    def _dropping(self, name: N) -> Iterator[None]:
        """Forget the definition at the end, whatever became of the change."""
        try:
            yield
        finally:
            self.cache.drop(name)


def _check_version(found: Queue | Stream | None, if_match: int | None) -> None:
    if if_match is None:
        return
    if found is None:
        raise PreconditionFailed("There is nothing that could have this version.")
    if found.version != if_match:
        raise PreconditionFailed(
            f"The version is {found.version}, not {if_match}.", version=found.version
        )


def _could_name(part: str) -> bool:
    """Names are printable ASCII; what is not would be no text to Postgres, or sort elsewhere."""
    return part.isascii() and (part == "" or part.isprintable())
