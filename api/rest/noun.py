"""Nouns as their routes need them: schemas, verbs, permissions and operations."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from fastapi import params

from storage.bootstrap import Storage
from storage.domain.access.permissions import Action, Principal


class OperationDoc(NamedTuple):
    """Id of an operation and its description, whose first line is the summary."""

    id: str
    description: str


Verb = Callable[..., Awaitable[Any]]


async def _not_supported(*_: object, **__: object) -> Any:
    raise NotImplementedError("The noun has the operation, but not the verb.")


class Verbs(NamedTuple):
    """The verbs of a noun's engine, as `storage.catalog.definition_store` has them."""

    put: Verb = _not_supported
    get: Verb = _not_supported
    change: Verb = _not_supported
    pause: Verb = _not_supported
    delete: Verb = _not_supported
    page: Verb = _not_supported


async def _no_fields(*_: object) -> Mapping[str, Any]:
    return {}


def _allow(*_: object) -> None:
    """Allow a specification, which names no other resource."""


class Noun(NamedTuple):
    """A noun as its routes need it.

    `name` and `plural`: as in paths. `path`: annotation of the name, a dependency. `see`, `manage`: permissions of reading and
    of changing. `verbs`: the engine's, for a caller. `listed`: permission by name of what a list shows; None shows
    everything, in no namespace. `schema`: that of the object.

    `detail`: the schema of what the verb `get` returns, if it is another one. `config`, `stored`: schemas of a put's body and
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
    verbs: Callable[[Storage, Principal], Verbs]
    operations: Mapping[str, OperationDoc]
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
