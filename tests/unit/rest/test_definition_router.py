"""Routes of a noun that declares its schemas, its verbs and its operations, and nothing else."""

from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple, Self

import pytest
from fastapi import Depends, FastAPI
from httpx import ASGITransport, AsyncClient
from pydantic import BaseModel

from api.native.dependencies import NamePart, principal_of, storage_of
from api.rest.definition_changes import PutOutcome
from api.rest.definition_router import definition_router
from api.rest.exception_handlers import install_handlers
from api.rest.noun import Noun, Permissions, Schemas, verbs_of
from api.rest.schema_base import DefinitionConfig
from storage.domain.definitions import Put
from storage.domain.errors import AlreadyExists, Forbidden, PreconditionFailed


class Note(NamedTuple):
    name: str
    spec: str
    version: int
    paused: bool = False


class NoteConfig(DefinitionConfig):
    text: str = ""

    @classmethod
    def from_domain(cls, spec: str) -> Self:
        return cls(text=spec)

    def to_domain(self) -> str:
        return self.text


class NotePatch(NoteConfig):
    """Change of a note."""

    def apply(self, _: str) -> str:
        return self.text


class NoteOut(BaseModel):
    name: str
    text: str
    paused: bool

    @classmethod
    def from_domain(cls, note: Note, **outcome: Any) -> Self:
        return cls(name=note.name, text=note.spec, paused=note.paused, **outcome)


class NoteStored(PutOutcome, NoteOut):
    """Note after a put."""


class NotePage(BaseModel):
    items: list[NoteOut]
    next_cursor: str | None


class NoteEngine:
    """Engine with one note, which records its calls."""

    def __init__(self) -> None:
        self.note = Note("a", "old", 3)
        self.calls: list[Any] = []

    async def put(self, name: str, spec: str, **options: Any) -> Put[Note]:
        self.calls.append((name, spec, options))
        if options["create_only"]:
            raise AlreadyExists("note", name, self.note)
        return Put(Note(name, spec, 4), False, self.note)

    async def get(self, _: str) -> Note:
        return self.note

    async def change(self, _: str, change: Any, *, if_match: int | None) -> Note:
        if if_match not in (None, 3):
            raise PreconditionFailed
        return self.note._replace(spec=change(self.note.spec), version=4)

    async def pause(self, _: str, *, paused: bool) -> Note:
        return self.note._replace(paused=paused)

    async def delete(self, name: str, *, if_match: int | None) -> None:
        self.calls.append((name, if_match))

    async def page(self, namespace: str, **page: Any) -> list[Note]:
        self.calls.append((namespace, page))
        return [Note(name, "", 1) for name in ("a", "b", "c")][: page["limit"]]


def note_from_path(note: NamePart) -> str:
    return note


def refuse_secrets(_: object, __: object, before: str | None, after: str) -> None:
    if "secret" in after:
        raise Forbidden(f"{before} to {after}")


@pytest.fixture
def engine() -> NoteEngine:
    return NoteEngine()


@pytest.fixture
def app(engine: NoteEngine) -> FastAPI:
    noun = Noun(
        name="note",
        path=Annotated[str, Depends(note_from_path)],
        own_permissions=Permissions([], []),
        schemas=Schemas(NoteOut, NoteConfig, NoteStored, NotePatch, NotePage),
        verbs=lambda *_: verbs_of(engine, list=engine.page),
        authorise=refuse_secrets,
        is_etag_complete=True,
        descriptions={
            operation: f"{operation.title()} a note."
            for operation in ("put", "get", "change", "pause", "resume", "delete", "list")
        },
    )
    app = FastAPI()
    app.include_router(definition_router(noun))
    app.dependency_overrides[storage_of] = lambda: None
    app.dependency_overrides[principal_of] = lambda: SimpleNamespace(namespace="default")
    install_handlers(app)
    return app


@pytest.fixture
def client(app: FastAPI) -> AsyncClient:
    return AsyncClient(transport=ASGITransport(app), base_url="http://notes")


async def test_noun_has_its_operations(app):
    paths = app.openapi()["paths"]

    operations = {path: sorted(methods) for path, methods in paths.items()}
    assert operations == {
        "/v1/notes/{note}": ["delete", "get", "patch", "put"],
        "/v1/notes/{note}/pause": ["delete", "put"],
        "/v1/notes": ["get"],
    }
    assert paths["/v1/notes/{note}"]["put"]["description"] == "Put a note."


async def test_put_returns_outcome_and_etag(client, engine):
    answer = await client.put("/v1/notes/a", json={"text": "new"}, headers={"If-Match": '"v3"'})

    change = {"pointer": "/text", "before": "old", "after": "new"}
    assert answer.json()["changes"] == [change]
    assert (answer.status_code, answer.headers["etag"]) == (200, '"v4"')
    assert engine.calls == [
        ("a", "new", {"if_match": 3, "create_only": False, "dry_run": False}),
    ]


async def test_create_only_put_compares_with_existing_object(client):
    answer = await client.put("/v1/notes/a", json={"text": "new"}, headers={"If-None-Match": "*"})

    assert answer.status_code == 412
    assert answer.json()["current"] == {"name": "a", "text": "old", "paused": False}
    assert [change["pointer"] for change in answer.json()["changes"]] == ["/text"]


async def test_get_of_unchanged_object_is_304(client):
    assert (await client.get("/v1/notes/a")).headers["etag"] == '"v3"'
    assert (await client.get("/v1/notes/a", headers={"If-None-Match": '"v3"'})).status_code == 304


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_specification_is_authorised(client, method):
    answer = await client.request(method, "/v1/notes/a", json={"text": "secret"})

    before = "None" if method == "PUT" else "old"
    assert (answer.status_code, answer.json()["detail"]) == (403, f"{before} to secret")


async def test_pause_and_resume_return_the_object(client):
    assert (await client.put("/v1/notes/a/pause")).json()["paused"] is True
    assert (await client.delete("/v1/notes/a/pause")).json()["paused"] is False


async def test_delete_passes_version(client, engine):
    assert (await client.delete("/v1/notes/a", headers={"If-Match": '"v3"'})).status_code == 204
    assert engine.calls == [("a", 3)]


async def test_list_continues_at_cursor(client, engine):
    page = (await client.get("/v1/notes?limit=1")).json()
    (
        await client.get("/v1/notes", params={"limit": 1, "cursor": page["next_cursor"]})
    ).raise_for_status()

    assert [item["name"] for item in page["items"]] == ["a"]
    assert [call[1]["after"] for call in engine.calls] == ["", "a"]
