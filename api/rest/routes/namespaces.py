"""Namespaces (tenants) and their quotas, for administrators of all namespaces."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import Depends

from api.native.dependencies import NamePart, acts_everywhere, may_all
from api.native.examples import AT, CREATED, Example
from api.rest.definition_router import definition_router
from api.rest.noun import Noun, Permissions, Schemas, Verbs, verbs_of
from api.rest.schemas.namespace import NamespaceConfig, NamespaceOut, NamespacePage, NamespaceStored
from storage.bootstrap import Storage
from storage.catalog.namespaces import Namespaces
from storage.domain.access.permissions import Action, Principal
from storage.domain.names import check_name
from storage.domain.quotas import Namespace


def namespace_from_path(namespace: NamePart) -> str:
    """Return the namespace that the path names. Raises ValidationFailed."""
    check_name(namespace)
    return namespace


MANAGE = [Depends(may_all(Action.ADMIN_NAMESPACES)), Depends(acts_everywhere)]


async def _list(namespaces: Namespaces, _: str, **page: Any) -> Sequence[Namespace]:
    return await namespaces.list(**page)


def _verbs(storage: Storage, _: Principal) -> Verbs:
    return verbs_of(storage.namespaces, list=partial(_list, storage.namespaces))


NAMESPACES = Noun(
    name="namespace",
    path=Annotated[str, Depends(namespace_from_path)],
    own_permissions=Permissions(MANAGE, MANAGE),
    schemas=Schemas(NamespaceOut, NamespaceConfig, NamespaceStored, page=NamespacePage),
    verbs=_verbs,
    descriptions={
        "put": "Create a namespace, or replace its quotas. They apply in all processes within a second.",
        "get": "Show a namespace and its quotas. The ETag covers the quotas only.",
        "delete": """Delete an empty namespace, including its finished jobs and ended keys.

            Queues and streams that were deleted within the last ten minutes, and archives, count as content.
            """,
        "list": "List namespaces by name.",
    },
)
router = definition_router(NAMESPACES)


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
