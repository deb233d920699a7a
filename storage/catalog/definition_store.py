"""Definition store of every noun: create, replace, change, pause, delete, list."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Generic, NamedTuple, TypeVar, Unpack

import attrs

from storage.concurrency.tasks import finally_call
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.definitions import (
    ANY_VERSION,
    Put,
    PutOptions,
    Spec,
    StoredDefinition,
    check_version,
    could_be_name,
    next_version,
    page_limit,
    with_changes,
)
from storage.domain.errors import AlreadyExists, InvalidCursor, MillstreamError, ValidationFailed
from storage.postgres.definition_table import DefinitionTable, LockedDefinition

N = TypeVar("N")
S = TypeVar("S", bound=Spec)
D = TypeVar("D", bound=StoredDefinition)
L = TypeVar("L", bound=LockedDefinition[Any])


def _unchanged(before: D, _: object) -> D:
    return before


def _requested(_: S, spec: S) -> S:
    return spec


def _allow(*_: object) -> None:
    """Allow every change."""


def _with_spec(definition: D, spec: Any) -> D:
    return with_changes(definition, spec=spec)


def _text(name: object) -> str:
    return str(getattr(name, "name", name))


class DefinitionRules(NamedTuple, Generic[N, S, D]):
    """Rules of a noun.

    `create`: the first definition of a name, from its specification and the time; None if a put passes it. `merge`: what a put stores, from the current
    specification and the requested one. `check_change`: raises ValidationFailed for a change of what is immutable. `is_pausable`:
    specifications have `paused`, which a put leaves alone; `check_pause`: raises ValidationFailed for one that cannot be paused.
    `redact`: the definition before a put with markers for its secrets, given what the put stores. `check_name`: raises for the name
    of an object that belongs to another one, with which it is put, changed and deleted.
    """

    not_found: Callable[[N], MillstreamError]
    create: Callable[[N, S, int], D] | None = None
    check_change: Callable[[S, S], None] = _allow
    merge: Callable[[S, S], S] = _requested
    with_spec: Callable[[D, S], D] = _with_spec
    is_pausable: bool = False
    check_pause: Callable[[S], None] = _allow
    redact: Callable[[D, S], D] = _unchanged
    check_name: Callable[[N], None] = _allow


@attrs.define(eq=False, slots=False)
class DefinitionStore(Generic[N, S, D, L]):
    """The definitions of one noun, and the one place that changes them.

    `check` raises ValidationFailed for a specification that other objects do not allow, such as one that names a deleted object. It
    runs before the lock on the name, for a change only with `checks_changes`. `on_change` is called
    with the name when a change has ended, also if it failed. Each change is one transaction, and
    raises OutcomeUnknown when it may have happened. `if_match` is the version that the caller has seen: PreconditionFailed is
    raised when another one is current, or none exists.
    """

    _table: DefinitionTable[N, D, L]
    _rules: DefinitionRules[N, S, D]
    _clock: Clock
    _check: Callable[[N, S], Awaitable[None]] | None = attrs.field(default=None, kw_only=True)
    _checks_changes: bool = attrs.field(default=True, kw_only=True)
    _on_change: Callable[[N], None] = attrs.field(default=lambda _: None, kw_only=True)

    async def put(
        self,
        name: N,
        spec: S,
        *,
        create: Callable[[N, S, int], D] | None = None,
        insert: Callable[[L, D], Awaitable[None]] | None = None,
        **options: Unpack[PutOptions],
    ) -> Put[D]:
        """Create the object or replace its specification. An equal one changes nothing.

        `create` replaces the rule of that name, `insert` the statement that stores a new object. Raises ValidationFailed,
        PreconditionFailed, AlreadyExists for `create_only` with an object that exists.
        """
        self._rules.check_name(name)
        spec.check()
        await self._check_put(name, spec, options.get("replace_pause", False))
        with finally_call(self._on_change, name):
            async with self._table.lock(name, dry_run=options.get("dry_run", False)) as locked:
                return await self.put_locked(
                    locked, name, spec, create=create, insert=insert, **options
                )

    async def _check_put(self, name: N, spec: S, replace_pause: bool) -> None:
        """Raise ValidationFailed for what other objects do not allow.

        A specification that names a deleted object, and is equal to the current one, is allowed.
        """
        if self._check is None:
            return
        try:
            await self._check(name, spec)
        except ValidationFailed as error:
            if any(fault.code != "not_found" for fault in error.faults):
                raise
            current: D | None = await self._table.find(name)
            if current is None or current.spec != self._merged(
                current, spec, replace_pause=replace_pause
            ):
                raise

    async def put_locked(
        self,
        locked: L,
        name: N,
        spec: S,
        *,
        create: Callable[[N, S, int], D] | None = None,
        insert: Callable[[L, D], Awaitable[None]] | None = None,
        **options: Unpack[PutOptions],
    ) -> Put[D]:
        """Create or replace the object of a locked name as `put` does; the caller has checked it."""
        current: D | None = locked.definition
        check_version(current, options.get("if_match"))
        if current is None:
            create = create or self._rules.create
            assert create is not None
            created = create(name, spec, self._clock.now_ms())
            await (insert(locked, created) if insert else locked.insert(created))
            return Put(created, True, None)
        replace_pause = options.get("replace_pause", False)
        merged = self._merged(current, spec, replace_pause=replace_pause)
        before = self._rules.redact(current, merged)
        if options.get("create_only"):
            raise AlreadyExists(self._table.kind, _text(name), before)
        return Put(await self._replace(locked, current, merged), False, before)

    def _merged(self, current: D, spec: S, *, replace_pause: bool = False) -> S:
        merged = self._rules.merge(current.spec, spec)
        if replace_pause or not self._rules.is_pausable:
            return merged
        return with_changes(merged, paused=current.spec.paused)

    async def change(self, name: N, change: Callable[[S], S], *, if_match: int | None = None) -> D:
        """Replace the specification by the result of `change`, atomically."""
        self._rules.check_name(name)
        if self._check is not None and self._checks_changes:
            definition: D | None = await self._table.find(name)
            if definition is not None:
                changed = change(definition.spec)
                changed.check()
                await self._check(name, changed)
        async with self.changing(name, if_match) as (locked, current):
            return await self._replace(locked, current, change(current.spec))

    async def pause(self, name: N, *, paused: bool, if_match: int | None = None) -> D:
        """Pause the object, or resume it. Its other settings are not checked."""
        async with self.changing(name, if_match) as (locked, current):
            return await self.pause_locked(locked, current, paused=paused)

    async def pause_locked(self, locked: L, current: D, *, paused: bool) -> D:
        """Pause the object of a locked name, or resume it."""
        self._rules.check_pause(current.spec)
        if current.spec.paused is paused:
            return current
        return await self._store(locked, current, with_changes(current.spec, paused=paused))

    async def delete(self, name: N, *, if_match: int | None = None) -> D:
        """Delete the object; return its last definition."""
        self._rules.check_name(name)
        async with self.changing(name, if_match) as (locked, current):
            await locked.delete(current, self._clock.now_ms())
            return current

    @asynccontextmanager
    async def changing(self, name: N, if_match: int | None = None) -> AsyncGenerator[tuple[L, D]]:
        """Lock a name and yield it with its definition, for changes beside the specification."""
        with finally_call(self._on_change, name):
            async with self._table.lock(name) as locked:
                current: D | None = locked.definition
                if current is None and if_match != ANY_VERSION:
                    raise self._rules.not_found(name)
                check_version(current, if_match)
                assert current is not None
                yield locked, current

    async def get(self, name: N) -> D:
        """Return the definition as Postgres has it now."""
        definition = await self._table.find(name)
        if definition is None:
            raise self._rules.not_found(name)
        return definition

    async def page(
        self,
        namespace: str,
        *,
        prefix: str = "",
        after: str = "",
        limit: int = limits.PAGE_ITEMS_DEFAULT,
    ) -> list[D]:
        """Return definitions of a namespace whose names begin with `prefix`, by name.

        Strictly after `after`; at most PAGE_ITEMS_MAX. Raises InvalidCursor.
        """
        if not could_be_name(after):
            raise InvalidCursor
        if not could_be_name(prefix):
            return []
        return await self._table.page(namespace, prefix, after, page_limit(limit))

    async def _replace(self, locked: L, current: D, spec: S) -> D:
        """Store the next version, unless it is equal to the current one."""
        spec.check()
        self._rules.check_change(current.spec, spec)
        return current if spec == current.spec else await self._store(locked, current, spec)

    async def _store(self, locked: L, current: D, spec: S) -> D:
        changed = next_version(self._rules.with_spec(current, spec), self._clock.now_ms())
        await locked.update(changed)
        return changed
