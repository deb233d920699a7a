"""Routes of the definitions of a noun: put, show, change, pause, resume, delete and list.

A noun declares its schemas and its operations, each with the verb of its engine. The operations have conditions
(RFC 9110), dry runs, audit, permissions and pages in common.
"""

from collections.abc import Callable, Mapping
from functools import partial
from inspect import cleandoc
from typing import Annotated, Any, cast

from fastapi import APIRouter, Body, Depends, Query, Response
from pydantic import BaseModel

from api.native.audited_route import AuditedRoute
from api.native.cursors import Page, decode_cursor, page_of
from api.native.dependencies import (
    CallersNamespace,
    Cursor,
    Limit,
    Prefix,
    PrincipalDep,
    StorageDep,
    require_json,
)
from api.native.former_names import note_former_members
from api.rest.conditional_requests import (
    IfMatch,
    IfNoneMatch,
    etag,
    expected_version,
    is_create_only,
    is_unchanged,
    note_outcome,
)
from api.rest.definition_changes import DryRun, comparing, put_outcome
from api.rest.noun import Noun, Verb
from api.rest.schema_base import DefinitionConfig
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Principal
from storage.domain.timeseries.samples import Latest

JSON_ONLY = Depends(require_json)
Measured = Annotated[bool, Query(description="Add the latest measurement of each item.")]
_NOT_MEASURED = Latest[Any](None, {})
VerbOf = Callable[[Storage, Principal], Verb]


def definition_router(noun: Noun) -> APIRouter:
    """Return the router of a noun with its operations, to which it adds its own."""
    router = APIRouter(
        prefix=f"{noun.path_prefix}/{noun.plural}",
        tags=[noun.tag or noun.plural],
        route_class=AuditedRoute,
    )
    for operation, description in noun.descriptions.items():
        name = noun.operation_id(operation)
        add = partial(_add, router, name=name, description=cleandoc(description))
        _ROUTES[operation](noun, partial(_verb, noun, operation), add)
    return router


def _verb(noun: Noun, operation: str, storage: Storage, principal: Principal) -> Verb:
    return noun.verbs(storage, principal)["pause" if operation == "resume" else operation]


def _add(
    router: APIRouter,
    method: str,
    path: str,
    endpoint: Callable[..., Any],
    *,
    annotations: Mapping[str, Any],
    **options: Any,
) -> None:
    """Add a route whose endpoint has the noun's types."""
    endpoint.__annotations__ = {**endpoint.__annotations__, **annotations}
    router.add_api_route(
        path,
        endpoint,
        methods=[method],
        **options,
    )


def _add_put(noun: Noun, verb: VerbOf, add: Callable[..., None]) -> None:
    async def put(
        *,
        name: Any,
        storage: StorageDep,
        principal: PrincipalDep,
        response: Response,
        config: DefinitionConfig,
        if_match: IfMatch = None,
        if_none_match: IfNoneMatch = None,
        dry_run: DryRun = False,
    ) -> Any:
        create_only = is_create_only(if_none_match)
        spec = config.to_domain()
        noun.authorise(storage, principal, None, spec)
        with comparing(config.comparable(), noun.schemas.resource):
            outcome = await verb(storage, principal)(
                name,
                spec,
                if_match=expected_version(if_match),
                create_only=create_only,
                dry_run=dry_run,
                **config.put_options(),
            )
        note_former_members(response, config)
        definition = outcome.definition
        note_outcome(response, definition.version, created=outcome.created and not dry_run)
        before = outcome.before and noun.schemas.config.from_domain(outcome.before.spec)
        after = noun.schemas.config.from_domain(definition.spec)
        fields = await noun.put_fields(storage, outcome, dry_run)
        return noun.schemas.stored.from_domain(
            definition, **put_outcome(before, after, dry_run=dry_run), **fields
        )

    body = Body() if noun.body_required else Body(default_factory=noun.schemas.config)
    add(
        "PUT",
        f"/{{{noun.name}}}",
        put,
        annotations={"name": noun.path, "config": Annotated[noun.schemas.config, body]},
        dependencies=[*noun.permissions.manage, JSON_ONLY],
        response_model=noun.schemas.stored,
        responses={201: {"model": noun.schemas.stored, "description": "Created"}},
    )


def _add_get(noun: Noun, verb: VerbOf, add: Callable[..., None]) -> None:
    async def get(
        *, name: Any, storage: StorageDep, principal: PrincipalDep, response: Response
    ) -> Any:
        definition = await verb(storage, principal)(name)
        return _response(schema, definition, response)

    async def get_if_changed(
        *,
        name: Any,
        storage: StorageDep,
        principal: PrincipalDep,
        response: Response,
        if_none_match: IfNoneMatch = None,
    ) -> Any:
        definition = await verb(storage, principal)(name)
        if is_unchanged(if_none_match, definition.version):
            return Response(status_code=304, headers={"etag": etag(definition.version)})
        return _response(schema, definition, response)

    schema = noun.schemas.detail or noun.schemas.resource
    add(
        "GET",
        f"/{{{noun.name}}}",
        get_if_changed if noun.is_etag_complete else get,
        annotations={"name": noun.path},
        dependencies=[*noun.permissions.see],
        response_model=schema,
        responses={304: {"description": "Not modified"}} if noun.is_etag_complete else {},
    )


def _add_change(noun: Noun, verb: VerbOf, add: Callable[..., None]) -> None:
    async def change(
        *,
        name: Any,
        storage: StorageDep,
        principal: PrincipalDep,
        response: Response,
        patch: Any,
        if_match: IfMatch = None,
    ) -> Any:
        def apply(before: Any) -> Any:
            after = patch.apply(before)
            noun.authorise(storage, principal, before, after)
            return after

        definition = await verb(storage, principal)(
            name, apply, if_match=expected_version(if_match)
        )
        note_former_members(response, patch)
        return _response(noun.schemas.resource, definition, response)

    add(
        "PATCH",
        f"/{{{noun.name}}}",
        change,
        annotations={"name": noun.path, "patch": noun.schemas.patch},
        dependencies=[*noun.permissions.manage, JSON_ONLY],
        response_model=noun.schemas.resource,
    )


def _add_pausing(
    method: str, paused: bool, noun: Noun, verb: VerbOf, add: Callable[..., None]
) -> None:
    async def set_paused(
        *, name: Any, storage: StorageDep, principal: PrincipalDep, response: Response
    ) -> Any:
        definition = await verb(storage, principal)(name, paused=paused)
        fields = await noun.pause_fields(storage, definition)
        return _response(schema, definition, response, **fields)

    schema = noun.schemas.changed or noun.schemas.resource
    add(
        method,
        f"/{{{noun.name}}}/pause",
        set_paused,
        annotations={"name": noun.path},
        dependencies=[*noun.permissions.manage],
        response_model=schema,
    )


def _add_delete(noun: Noun, verb: VerbOf, add: Callable[..., None]) -> None:
    async def delete(
        *, name: Any, storage: StorageDep, principal: PrincipalDep, if_match: IfMatch = None
    ) -> None:
        await verb(storage, principal)(name, if_match=expected_version(if_match))

    add(
        "DELETE",
        f"/{{{noun.name}}}",
        delete,
        annotations={"name": noun.path},
        dependencies=[*noun.permissions.manage],
        status_code=204,
    )


def _add_list(noun: Noun, verb: VerbOf, add: Callable[..., None]) -> None:
    async def list_page(
        *,
        parent: Any,
        storage: StorageDep,
        principal: PrincipalDep,
        prefix: Prefix = "",
        limit: Limit = limits.PAGE_ITEMS_DEFAULT,
        cursor: Cursor = "",
    ) -> Any:
        page = await _read_page(
            noun,
            verb(storage, principal),
            parent,
            principal,
            prefix=prefix,
            limit=limit,
            cursor=cursor,
        )
        items = [noun.schemas.resource.from_domain(definition) for definition in page.items]
        return noun.schemas.page(items=items, next_cursor=page.next_cursor)

    async def list_page_measured(
        *,
        parent: Any,
        storage: StorageDep,
        principal: PrincipalDep,
        prefix: Prefix = "",
        limit: Limit = limits.PAGE_ITEMS_DEFAULT,
        cursor: Cursor = "",
        measured: Measured = False,
    ) -> Any:
        assert measurement is not None
        page = await _read_page(
            noun,
            verb(storage, principal),
            parent,
            principal,
            prefix=prefix,
            limit=limit,
            cursor=cursor,
        )
        latest = (
            await measurement.latest(storage, principal.namespace) if measured else _NOT_MEASURED
        )
        items = [
            noun.schemas.listed.from_domain(
                each, measurement=measurement.of(latest, noun.text(each))
            )
            for each in page.items
        ]
        return noun.schemas.page(items=items, next_cursor=page.next_cursor)

    measurement = noun.measurement
    add(
        "GET",
        "",
        list_page if measurement is None else list_page_measured,
        annotations={"parent": noun.parent or CallersNamespace},
        dependencies=[*noun.permissions.see],
        response_model=noun.schemas.page,
    )


async def _read_page(
    noun: Noun,
    list_definitions: Verb,
    parent: Any,
    principal: Principal,
    *,
    prefix: str,
    limit: int,
    cursor: str,
) -> Page[Any]:
    is_scoped = noun.parent is not None or noun.permissions.listed is not None
    scope = (noun.plural, str(parent)) if is_scoped else (noun.plural,)
    about = (*scope, prefix)
    after = decode_cursor(cursor, about, str) if cursor else ""
    definitions = await list_definitions(parent, prefix=prefix, after=after, limit=limit + 1)
    return page_of(definitions, limit, about, noun.text, partial(_may_list, noun, principal))


_ROUTES: dict[str, Callable[[Noun, VerbOf, Callable[..., None]], None]] = {
    "put": _add_put,
    "get": _add_get,
    "change": _add_change,
    "pause": partial(_add_pausing, "PUT", True),
    "resume": partial(_add_pausing, "DELETE", False),
    "delete": _add_delete,
    "list": _add_list,
}


def _response(schema: Any, definition: Any, response: Response, **fields: Any) -> BaseModel:
    response.headers["etag"] = etag(definition.version)
    return cast("BaseModel", schema.from_domain(definition, **fields))


def _may_list(noun: Noun, principal: Principal, definition: Any) -> bool:
    return noun.permissions.listed is None or principal.policy.allows(
        noun.permissions.listed, noun.text(definition)
    )
