"""Outcome of a PUT: the fields that it changed, or would change."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, cast

from fastapi import Query
from pydantic import BaseModel, Field

from api.http.validation_errors import pointer_to
from api.native.former_names import deprecated_members
from api.rest.schema_base import Config, DefinitionConfig
from storage.domain.definitions import StoredDefinition
from storage.domain.errors import AlreadyExists

DryRun = Annotated[
    bool,
    Query(description="Check the request and return what it would change, without changing it."),
]


class FieldChange(BaseModel):
    """A field of a configuration that differs."""

    pointer: Annotated[str, Field(description="JSON Pointer of the field.")]
    before: Annotated[Any, Field(description="Current value; null if it has none.")]
    after: Annotated[Any, Field(description="Requested value; null if it has none.")]


class PutOutcome(BaseModel):
    """Outcome of a PUT."""

    created: Annotated[bool, Field(description="False if the object existed.")]
    dry_run: Annotated[bool, Field(description="True if nothing was stored.")]
    changes: Annotated[
        list[FieldChange], Field(description="Fields that differ from those before.")
    ]


def put_outcome(before: Config | None, after: Config, *, dry_run: bool) -> dict[str, Any]:
    """Return the fields of a PutOutcome. `before` is None if the object was created."""
    changes: list[FieldChange] = []
    if before is not None:
        old, new = _dumped(before), _dumped(after)
        changes = list(_changes((), dict.fromkeys((*old, *new)), old, new))
    return {"created": before is None, "dry_run": dry_run, "changes": changes}


@contextmanager
def comparing(requested: DefinitionConfig, schema: Any) -> Iterator[None]:
    """Add the object that exists, and the requested fields that differ, to AlreadyExists.

    `schema` is that of the object. A field that the request leaves out does not differ: its default was not
    requested. A list is one value: what its items leave out is requested.
    """
    try:
        yield
    except AlreadyExists as error:
        spec = cast("StoredDefinition", error.current).spec
        fields = _with_defaults_in_lists(_dumped(requested, exclude_unset=True), _dumped(requested))
        changes = _changes((), fields, _dumped(requested.from_domain(spec)), fields)
        error.facts["changes"] = [change.model_dump() for change in changes]
        current = schema.from_domain(error.current)
        error.facts["current"] = current.model_dump(mode="json", by_alias=True)
        raise


def _dumped(config: Config, *, exclude_unset: bool = False) -> dict[str, Any]:
    return config.model_dump(
        mode="json",
        by_alias=True,
        exclude=deprecated_members(type(config)),
        exclude_unset=exclude_unset,
    )


def _with_defaults_in_lists(
    fields: Mapping[str, Any], complete: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the requested fields, with lists as they are in the complete configuration."""
    return {
        name: _with_defaults_in_lists(value, complete[name])
        if isinstance(value, dict)
        else complete[name]
        for name, value in fields.items()
    }


def _changes(
    path: tuple[str, ...],
    names: Iterable[str],
    before: Mapping[str, Any],
    after: Mapping[str, Any],
) -> Iterator[FieldChange]:
    for name in names:
        old, new = before.get(name), after.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            inner = new if names is after else dict.fromkeys((*old, *new))
            yield from _changes((*path, name), inner, old, new)
        elif old != new:
            yield FieldChange(pointer=pointer_to((*path, name)), before=old, after=new)
