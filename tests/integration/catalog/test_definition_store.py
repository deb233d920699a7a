"""Definition store of a noun that declares a table, a mapping and rules, and nothing else."""

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import msgspec
import pytest
from sqlalchemy import BigInteger, ColumnElement, Row
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from storage.catalog.cached_definitions import CachedDefinitions
from storage.catalog.definition_store import DefinitionRules, DefinitionStore
from storage.domain.clock import ManualClock
from storage.domain.errors import (
    AlreadyExists,
    InvalidCursor,
    PreconditionFailed,
    QueueNotFound,
    ValidationFailed,
)
from storage.domain.names import QueueName
from storage.postgres.database import open_database
from storage.postgres.definition_table import DefinitionTable, LockedDefinition
from storage.postgres.listener import Listener, running
from storage.settings import StorageSettings
from tests.conditions import eventually
from tests.databases import execute

NOTE = QueueName("note")
CREATE_TABLE = """
create table notes (
    namespace text, name text collate "C", spec jsonb, version bigint, created_at_ms bigint,
    changed_at_ms bigint, primary key (namespace, name)
)
"""


class NoteSpec(msgspec.Struct, frozen=True):
    text: str = ""
    color: str = "white"
    paused: bool = False

    def check(self) -> None:
        if len(self.text) > 10:
            raise ValidationFailed.at("/text", "Too long")


class Note(msgspec.Struct, frozen=True):
    name: QueueName
    spec: NoteSpec
    version: int
    created_at_ms: int
    changed_at_ms: int


class NoteRow(SQLModel, table=True):
    __tablename__ = "notes"
    metadata = type(SQLModel.metadata)()  # not that of the service's tables

    namespace: str = Field(primary_key=True)
    name: str = Field(primary_key=True)
    spec: dict[str, Any] = Field(sa_type=JSONB)
    version: int = Field(sa_type=BigInteger)
    created_at_ms: int = Field(sa_type=BigInteger)
    changed_at_ms: int = Field(sa_type=BigInteger)


class NoteRows(DefinitionTable[QueueName, Note, LockedDefinition[Note]]):
    kind = "note"
    table = NoteRow

    def definition_of(self, row: Row[Any]) -> Note:
        spec = msgspec.convert(row.spec, NoteSpec)
        name = QueueName(row.name, row.namespace)
        return Note(name, spec, row.version, row.created_at_ms, row.changed_at_ms)

    def row_of(self, definition: Note) -> ColumnElement[bool]:
        return self._is_one_of([definition.name])

    def values(self, definition: Note) -> dict[str, Any]:
        name = {"namespace": definition.name.namespace, "name": definition.name.name}
        return self.changes(definition) | name | {"created_at_ms": definition.created_at_ms}

    def locked(self, session: Any, name: Any, row: Row[Any] | None) -> LockedDefinition[Note]:
        return LockedDefinition(session, self, name, row)


def refuse_change(old: NoteSpec, new: NoteSpec) -> None:
    if old.color != new.color:
        raise ValidationFailed.at("/color", "Immutable", "immutable")


def not_found(name: QueueName) -> QueueNotFound:
    return QueueNotFound(f"Note '{name.name}' does not exist.")


RULES: DefinitionRules[QueueName, NoteSpec, Note] = DefinitionRules(
    not_found=not_found,
    create=lambda name, spec, now_ms: Note(name, spec, 1, now_ms, now_ms),
    check_change=refuse_change,
    is_pausable=True,
)


class Notes(NamedTuple):
    store: DefinitionStore[QueueName, NoteSpec, Note, LockedDefinition[Note]]
    reader: CachedDefinitions[QueueName, Note]


@pytest.fixture
async def notes(database_url: str, clock: ManualClock) -> AsyncIterator[Notes]:
    execute(database_url, CREATE_TABLE)
    where = StorageSettings(redis_url="redis://unused", database_url=database_url)
    listener = Listener(database_url)
    async with open_database(where) as database:
        rows = NoteRows(database)
        reader: CachedDefinitions[QueueName, Note] = CachedDefinitions(
            rows, QueueName, not_found, listener, clock
        )
        async with running(listener):
            await listener.attempted()
            yield Notes(DefinitionStore(rows, RULES, clock), reader)
        await reader.close()


async def test_put_creates_then_replaces(notes, clock):
    created = await notes.store.put(NOTE, NoteSpec("one"))
    clock.advance(ms=5)
    replaced = await notes.store.put(NOTE, NoteSpec("two"))

    assert created.created
    assert created.before is None
    assert replaced.before == created.definition
    assert replaced.definition.version == 2
    assert replaced.definition.changed_at_ms == created.definition.changed_at_ms + 5


async def test_equal_put_changes_nothing(notes):
    created, *_ = await notes.store.put(NOTE, NoteSpec("one"))

    replaced, *_ = await notes.store.put(NOTE, NoteSpec("one"))

    assert replaced == created


async def test_put_rejects_invalid_and_immutable_settings(notes):
    with pytest.raises(ValidationFailed):
        await notes.store.put(NOTE, NoteSpec("x" * 11))
    await notes.store.put(NOTE, NoteSpec("one"))
    with pytest.raises(ValidationFailed):
        await notes.store.put(NOTE, NoteSpec("one", color="red"))


async def test_create_only_put_rejects_existing_object(notes):
    created, *_ = await notes.store.put(NOTE, NoteSpec("one"), create_only=True)

    with pytest.raises(AlreadyExists) as rejected:
        await notes.store.put(NOTE, NoteSpec("two"), create_only=True)

    assert rejected.value.current == created
    assert str(rejected.value) == "The note 'note' already exists."


@pytest.mark.parametrize("verb", ["put", "change", "pause", "delete"])
async def test_other_version_is_rejected(notes, verb):
    await notes.store.put(NOTE, NoteSpec("one"))
    calls = {
        "put": lambda: notes.store.put(NOTE, NoteSpec("two"), if_match=7),
        "change": lambda: notes.store.change(NOTE, lambda spec: spec, if_match=7),
        "pause": lambda: notes.store.pause(NOTE, paused=True, if_match=7),
        "delete": lambda: notes.store.delete(NOTE, if_match=7),
    }

    with pytest.raises(PreconditionFailed) as rejected:
        await calls[verb]()

    assert rejected.value.facts == {"version": 1}


async def test_dry_run_stores_nothing(notes):
    put = await notes.store.put(NOTE, NoteSpec("one"), dry_run=True)

    assert put.created
    with pytest.raises(QueueNotFound):
        await notes.store.get(NOTE)


async def test_put_leaves_pause_alone(notes):
    await notes.store.put(NOTE, NoteSpec("one"))
    paused = await notes.store.pause(NOTE, paused=True)

    replaced, *_ = await notes.store.put(NOTE, NoteSpec("two"))
    resumed = await notes.store.pause(NOTE, paused=False)

    assert paused.spec == NoteSpec("one", paused=True)
    assert replaced.spec == NoteSpec("two", paused=True)
    assert (resumed.spec, resumed.version) == (NoteSpec("two"), 4)


async def test_other_objects_are_checked_before_put_and_change(notes):
    checked = []

    async def check(name: QueueName, spec: NoteSpec) -> None:
        checked.append(spec.text)
        if spec.text == "refused":
            raise ValidationFailed.at("/text", "Not allowed")

    store = DefinitionStore(notes.store._table, RULES, ManualClock(), check=check)
    await store.put(NOTE, NoteSpec("one"))

    with pytest.raises(ValidationFailed):
        await store.change(NOTE, lambda _: NoteSpec("refused"))

    assert checked == ["one", "refused"]
    assert (await store.get(NOTE)).spec == NoteSpec("one")


async def test_deleted_name_is_free(notes):
    await notes.store.put(NOTE, NoteSpec("one"))

    deleted = await notes.store.delete(NOTE)

    assert deleted.spec == NoteSpec("one")
    assert (await notes.store.put(NOTE, NoteSpec("two"))).created


async def test_page_has_names_of_namespace_in_order(notes):
    for name in ("b", "a", "aa"):
        await notes.store.put(QueueName(name), NoteSpec())
    await notes.store.put(QueueName("a", "other"), NoteSpec())

    page = await notes.store.page("default", prefix="a", limit=5)
    rest = await notes.store.page("default", after="a", limit=1)

    assert [note.name.name for note in page] == ["a", "aa"]
    assert [note.name.name for note in rest] == ["aa"]
    assert await notes.store.page("default", prefix="\0") == []
    with pytest.raises(InvalidCursor):
        await notes.store.page("default", after="\0")


async def test_announced_change_reaches_cache(notes):
    await notes.store.put(NOTE, NoteSpec("one"))
    cached = await notes.reader.get(NOTE)

    await notes.store.change(NOTE, lambda _: NoteSpec("two"))

    assert cached.spec == NoteSpec("one")
    await eventually(lambda: text_of(notes), "two")


async def text_of(notes: Notes) -> str:
    return (await notes.reader.get(NOTE)).spec.text
