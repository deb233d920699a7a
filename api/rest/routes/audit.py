"""Audit log: who did what, when, from where, and the fields that changed."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import AwareDatetime

from api.http.codecs import NDJSON, answer_type
from api.native.cursors import decode_cursor, page_of
from api.native.dependencies import Cursor, Limit, PrincipalDep, StorageDep, may
from api.native.examples import AT, Example
from api.native.fields import moment_ms
from api.native.native_route import NativeRoute
from api.rest.schemas.audit import AuditEntry, AuditOrder, AuditPage
from storage.domain import limits
from storage.domain.access.audit import AuditFilter, canonical
from storage.domain.access.permissions import Action, Principal

router = APIRouter(prefix="/v1/audit", tags=["audit"], route_class=NativeRoute)

READ = Depends(may(Action.AUDIT_READ))
Text = Annotated[str | None, Query(max_length=limits.AUDIT_TEXT_CHARACTERS_MAX)]


@router.get("", dependencies=[READ], response_model=AuditPage, response_model_exclude_unset=True)
async def list_audit_entries(
    storage: StorageDep,
    principal: PrincipalDep,
    request: Request,
    namespace: Text = None,
    principal_: Annotated[
        str | None, Query(alias="principal", description="Name of the principal.")
    ] = None,
    action: Text = None,
    operation: Annotated[
        str | None,
        Query(
            description="An operation such as `delete_queue`, or `delete*` for all that begin so."
        ),
    ] = None,
    resource: Annotated[
        str | None,
        Query(description="A resource such as `queues/orders`, including everything below it."),
    ] = None,
    from_: Annotated[
        AwareDatetime | None, Query(alias="from", description="At or after this time.")
    ] = None,
    to: Annotated[AwareDatetime | None, Query(description="Before this time.")] = None,
    order: AuditOrder = AuditOrder.NEWEST,
    limit: Limit = limits.PAGE_ITEMS_DEFAULT,
    cursor: Cursor = "",
) -> AuditPage | Response:
    """List audit entries of the caller's namespace, or of all namespaces.

    Administrators of all namespaces see all entries. With `Accept: application/x-ndjson`, the response has one line per
    entry and a last line of type `end`.
    """
    query = AuditFilter(
        namespace=_namespace(principal, namespace),
        principal=principal_,
        action=action,
        operation=operation,
        resource=resource,
        since_ms=None if from_ is None else moment_ms(from_),
        until_ms=None if to is None else moment_ms(to),
    )
    about = ("audit", principal.namespace, order.value, *map(str, query.key_values()))
    entries = await storage.audit_log.page(
        query,
        after=decode_cursor(cursor, about, int) if cursor else None,
        limit=limit + 1,
        oldest_first=order is AuditOrder.OLDEST,
    )
    page = page_of(entries, limit, about, lambda entry: entry.seq)
    answer = AuditPage(
        items=[AuditEntry.from_domain(entry) for entry in page.items],
        next_cursor=page.next_cursor,
        complete=query == AuditFilter(),
    )
    if answer_type(dict(request.scope["headers"])) == NDJSON:
        return Response(_lines(answer), media_type=NDJSON)
    return answer


def _namespace(principal: Principal, requested: str | None) -> str | None:
    """Return the namespace whose entries are listed, or None for all."""
    return requested if principal.all_namespaces else principal.namespace


def _lines(page: AuditPage) -> str:
    said = page.model_dump(mode="json", exclude_unset=True)
    end = {"type": "end", **{name: value for name, value in said.items() if name != "items"}}
    return "".join(f"{canonical(line)}\n" for line in (*said["items"], end))


# Examples of the OpenAPI document

EXAMPLES = {
    "list_audit_entries": Example(
        "/v1/audit?resource=queues/orders&limit=1",
        answer={
            "items": [
                {
                    "seq": 1,
                    "called_at": AT,
                    "namespace": "default",
                    "principal": "local-administrator",
                    "credential": "",
                    "authenticated": "open",
                    "address": "127.0.0.1",
                    "protocol": "rest",
                    "operation": "change_queue",
                    "action": "queue:manage",
                    "resource": "queues/orders",
                    "request_id": "5f3a9c0e12ab00000001",
                    "outcome": "done",
                    "before": {"visibility_timeout_ms": 30000},
                    "after": {"visibility_timeout_ms": 60000},
                    "prev_hash": "0" * 64,
                    "hash": "6a1f" * 16,
                }
            ],
            "next_cursor": None,
            "complete": False,
        },
    ),
}
