"""Nouns as their routes need them: schemas, verbs, permissions and operations."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from fastapi import params

from storage.bootstrap import Storage
from storage.domain.access.permissions import Action, Principal

Verb = Callable[..., Awaitable[Any]]
"""A method of an engine, as `storage.catalog.definition_store` has it."""
VerbOf = Callable[[Storage, Principal], Verb]
"""Returns the engine's method for a caller."""


class ResourceOperation(NamedTuple):
    """An operation: its id, its description, whose first line is the summary, and its verb."""

    id: str
    description: str
    verb: VerbOf


async def _no_fields(*_: object) -> Mapping[str, Any]:
    return {}


def _allow(*_: object) -> None:
    """Allow a specification, which names no other resource."""


class Noun(NamedTuple):
    """A noun as its routes need it.

    `name` and `plural`: as in paths. `path`: annotation of the name, a dependency. `see`, `manage`: permissions of reading and
    of changing. `listed`: permission by name of what a list shows; None shows
    everything, in no namespace. `schema`: that of the object.

    `detail`: the schema of what `get` returns, if it is another one. `config`, `stored`: schemas of a put's body and
    answer. `body_required`: a put without a body is invalid. `changed`: the schema after a pause. `patch`: the schema of a
    change. `page`: the schema of a list.

    `authorise`: checks what a specification names, given the caller, the specification before, or None, and the new one.
    `put_fields`, `pause_fields`: members of these answers beside the object. `is_etag_complete`: nothing is shown that the
    version does not cover, so that a client may ask whether it has changed.
    """

    name: str
    plural: str
    path: Any
    see: Sequence[params.Depends]
    manage: Sequence[params.Depends]
    operations: Mapping[str, ResourceOperation]
    schema: Any
    listed: Action | None = None
    detail: Any = None
    config: Any = None
    stored: Any = None
    body_required: bool = False
    changed: Any = None
    patch: Any = None
    page: Any = None
    authorise: Callable[[Storage, Principal, Any, Any], None] = _allow
    put_fields: Callable[[Storage, Any, bool], Awaitable[Mapping[str, Any]]] = _no_fields
    pause_fields: Callable[[Storage, Any], Awaitable[Mapping[str, Any]]] = _no_fields
    is_etag_complete: bool = False
