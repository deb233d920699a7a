"""Nouns as their routes need them: schemas, verbs, permissions and operations."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from fastapi import Depends, params

from api.native.dependencies import may
from api.native.fields import rfc3339
from api.rest.field_map import Mapped
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action, Principal
from storage.domain.timeseries.samples import Latest

Verb = Callable[..., Awaitable[Any]]
"""A method of an engine, as `storage.catalog.definition_store` has it."""
Verbs = Mapping[str, Verb]
"""Methods of an engine by operation; `resume` has that of `pause`, which is given what to do."""

_VERBS = ("put", "get", "change", "pause", "delete")


def verbs_of(engine: Any, suffix: str = "", **others: Verb) -> Verbs:
    """Return the methods that an engine names as the operations, with a suffix, and others."""
    methods: dict[str, Any] = {verb: getattr(engine, verb + suffix, None) for verb in _VERBS}
    return methods | others


def catalog_verbs(noun: str) -> Callable[[Storage, Principal], Verbs]:
    """Return what returns the catalog's methods for a noun, such as `put_queue`."""

    def verbs(storage: Storage, _: Principal) -> Verbs:
        catalog = storage.catalog
        get, list_page = getattr(catalog, f"fresh_{noun}"), getattr(catalog, f"list_{noun}s")
        return verbs_of(catalog, f"_{noun}", get=get, list=list_page)

    return verbs


class Schemas(NamedTuple):
    """Schemas of a noun: the object, a put's body and answer, a change, and a list.

    `detail`: what `get` returns, `changed`: what a pause returns, `listed`: an item of a list, if it is not the object.
    """

    resource: Any
    config: Any = None
    stored: Any = None
    patch: Any = None
    page: Any = None
    detail: Any = None
    changed: Any = None
    listed: Any = None


class MeasurementOf(NamedTuple):
    """Schema of a measurement, and what returns the latest samples of a namespace."""

    schema: type[Mapped]
    latest: Callable[[Storage, str], Awaitable[Latest[Any]]]

    def of(self, latest: Latest[Any], name: str) -> Mapped | None:
        """Return the measurement of an object; None if it was never measured."""
        sample = latest.get(name)
        if sample is None or latest.at_ms is None:
            return None
        return self.schema.from_domain(sample, measured_at=rfc3339(latest.at_ms))


class Permissions(NamedTuple):
    """Permissions of reading and of changing.

    `listed`: permission by name of what a list shows; None shows everything, in no namespace.
    """

    see: Sequence[params.Depends]
    manage: Sequence[params.Depends]
    listed: Action | None = None


@cache
def _by_name(noun: str) -> Permissions:
    """Return the permissions of a noun whose names grants can name."""
    see, manage = Action(f"{noun}:list"), Action(f"{noun}:manage")
    return Permissions([Depends(may(see))], [Depends(may(manage))], see)


async def _no_fields(*_: object) -> Mapping[str, Any]:
    return {}


def _text(definition: Any) -> str:
    return str(getattr(definition.name, "name", definition.name))


def _allow(*_: object) -> None:
    """Allow a specification, which names no other resource."""


class Noun(NamedTuple):
    """A noun as its routes need it.

    `name`: as in paths. `path`: annotation of the name, a dependency. `verbs`: returns the engine's methods for a caller.
    `descriptions`: the operations with their descriptions, whose first lines are the summaries.
    `id`: the noun in ids of operations; `ids`: ids that differ from the rule. `body_required`: a put without a body is invalid.

    `path_prefix`: what comes before its own in paths, as of routes of a topic. `parent`: annotation of what a list is of, then; otherwise it is of the caller's
    namespace. `tag`: that of its operations, if it is not its own.

    `text`: returns the name of a definition as in paths.

    `authorise`: checks what a specification names, given the caller, the specification before, or None, and the new one.
    `put_fields`, `pause_fields`: members of these answers beside the object. `measurement`: what a list shows of the
    latest measurements, if they are requested. `is_etag_complete`: nothing is shown that the
    version does not cover, so that a client may ask whether it has changed.
    """

    name: str
    path: Any
    schemas: Schemas
    verbs: Callable[[Storage, Principal], Verbs]
    descriptions: Mapping[str, str]
    own_permissions: Permissions | None = None
    id: str = ""
    ids: Mapping[str, str] = {}
    body_required: bool = False
    authorise: Callable[[Storage, Principal, Any, Any], None] = _allow
    put_fields: Callable[[Storage, Any, bool], Awaitable[Mapping[str, Any]]] = _no_fields
    pause_fields: Callable[[Storage, Any], Awaitable[Mapping[str, Any]]] = _no_fields
    measurement: MeasurementOf | None = None
    is_etag_complete: bool = False
    path_prefix: str = "/v1"
    parent: Any = None
    text: Callable[[Any], str] = _text
    tag: str = ""

    @property
    def permissions(self) -> Permissions:
        """Its own permissions, or those to list and to manage it by name."""
        return self.own_permissions or _by_name(self.name)

    @property
    def plural(self) -> str:
        """The noun of a list, as in paths."""
        return f"{self.name}s"

    def operation_id(self, operation: str) -> str:
        """Return the id of an operation, such as put_queue or list_queues."""
        rule = f"{operation}_{self.id or self.name}" + ("s" if operation == "list" else "")
        return self.ids.get(operation, rule)
