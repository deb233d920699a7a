"""Namespaces (tenants) and their quotas, for administrators of all namespaces."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Response

from api.native.audited_route import AuditedRoute
from api.native.cursors import decode_cursor, encode_cursor
from api.native.dependencies import (
    Cursor,
    Limit,
    NamePart,
    Prefix,
    PrincipalDep,
    StorageDep,
    may_all,
    require_json,
)
from api.native.examples import AT, CREATED, Example
from api.rest.conditional_requests import (
    IfMatch,
    IfNoneMatch,
    etag,
    expected_version,
    is_create_only,
    note_outcome,
)
from api.rest.definition_changes import DryRun, comparing
from api.rest.schemas.namespace import NamespaceConfig, NamespaceOut, NamespacePage, NamespaceStored
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import Forbidden, NamespaceNotFound, PreconditionFailed
from storage.domain.names import check_name


def acts_everywhere(principal: PrincipalDep) -> None:
    """Raise Forbidden unless the caller administers all namespaces."""
    if not principal.all_namespaces:
        raise Forbidden(f"'{principal.name}' is not an administrator of all namespaces.")


router = APIRouter(prefix="/v1/namespaces", tags=["namespaces"], route_class=AuditedRoute)

MANAGE = [Depends(may_all(Action.ADMIN_NAMESPACES)), Depends(acts_everywhere)]
JSON_ONLY = Depends(require_json)


@router.put(
    "/{namespace}",
    dependencies=[*MANAGE, JSON_ONLY],
    responses={201: {"model": NamespaceStored, "description": "Created"}},
)
async def put_namespace(
    namespace: NamePart,
    storage: StorageDep,
    response: Response,
    config: Annotated[NamespaceConfig, Body(default_factory=NamespaceConfig)],
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
    dry_run: DryRun = False,
) -> NamespaceStored:
    """Create a namespace, or replace its quotas. They apply in all processes within a second."""
    if if_match == "*":
        await _require_namespace(storage, namespace)
    with comparing(
        config, lambda definition: NamespaceConfig.of(definition.quotas), NamespaceOut.from_domain
    ):
        put = await storage.namespaces.put(
            namespace,
            config.to_domain(),
            if_match=expected_version(if_match),
            create_only=is_create_only(if_none_match),
            dry_run=dry_run,
        )
    note_outcome(response, put.definition.version, created=put.created and not dry_run)
    return NamespaceStored.of_put(put, dry_run=dry_run)


@router.get("/{namespace}", dependencies=MANAGE)
async def get_namespace(
    namespace: NamePart, storage: StorageDep, response: Response
) -> NamespaceOut:
    """Show a namespace and its quotas. The ETag covers the quotas only."""
    check_name(namespace)
    stored = await storage.namespaces.get(namespace)
    response.headers["etag"] = etag(stored.version)
    return NamespaceOut.from_domain(stored)


@router.delete("/{namespace}", dependencies=MANAGE, status_code=204)
async def delete_namespace(
    namespace: NamePart, storage: StorageDep, if_match: IfMatch = None
) -> None:
    """Delete an empty namespace, including its finished jobs and ended keys.

    Queues and streams that were deleted within the last ten minutes, and archives, count as content.
    """
    check_name(namespace)
    if if_match == "*":
        await _require_namespace(storage, namespace)
    await storage.namespaces.delete(namespace, if_match=expected_version(if_match))


@router.get("", dependencies=MANAGE)
async def list_namespaces(
    storage: StorageDep,
    prefix: Prefix = "",
    limit: Limit = limits.PAGE_ITEMS_DEFAULT,
    cursor: Cursor = "",
) -> NamespacePage:
    """List namespaces by name."""
    about = ("namespaces", prefix)
    after = decode_cursor(cursor, about, str) if cursor else ""
    namespaces = await storage.namespaces.list(prefix=prefix, after=after, limit=limit + 1)
    items = [NamespaceOut.from_domain(namespace) for namespace in namespaces[:limit]]
    has_more = len(namespaces) > limit
    return NamespacePage(
        items=items, next_cursor=encode_cursor(about, items[-1].name) if has_more else None
    )


async def _require_namespace(storage: Storage, namespace: str) -> None:
    """Raise PreconditionFailed unless the namespace exists."""
    try:
        await storage.namespaces.get(namespace)
    except NamespaceNotFound:
        raise PreconditionFailed("If-Match: * requires an existing namespace.") from None


# Examples of the OpenAPI document

_NO_RATES = {
    "calls_per_second": None,
    "messages_per_second": None,
    "bytes_per_second": None,
    "burst_seconds": 1,
}
_NAMESPACE = {
    "rates": {**_NO_RATES, "calls_per_second": 1000, "burst_seconds": 2},
    "resources": [
        {"resources": "queue/orders-*", "rates": {**_NO_RATES, "messages_per_second": 500}}
    ],
    "connections_max": None,
    "queues_max": 50,
    "streams_max": None,
    "stored_bytes_max": None,
    "name": "acme",
    "account_id": "310984467205",
    "stored_bytes": None,
    "over_storage_quota": False,
    "version": 1,
    "created_at": AT,
    "changed_at": AT,
}

EXAMPLES = {
    "put_namespace": Example(
        "/v1/namespaces/acme",
        {
            "rates": {"calls_per_second": 1000, "burst_seconds": 2},
            "resources": [{"resources": "queue/orders-*", "rates": {"messages_per_second": 500}}],
            "queues_max": 50,
        },
        status=201,
        answer={**_NAMESPACE, **CREATED},
    ),
    "get_namespace": Example("/v1/namespaces/acme", answer=_NAMESPACE),
    "list_namespaces": Example(
        "/v1/namespaces?prefix=a", answer={"items": [_NAMESPACE], "next_cursor": None}
    ),
    "delete_namespace": Example("/v1/namespaces/acme", status=204),
}
