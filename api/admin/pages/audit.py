"""Audit log page: actor, action, time, origin and changed values."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response

from api.admin.error_pages import PageRoute
from api.admin.lists import PAGE_ROWS, Words, first_page
from api.admin.rendering import Context
from api.native.dependencies import may_all
from storage.domain import limits
from storage.domain.access.audit import AuditFilter, AuditRecord
from storage.domain.access.permissions import Action
from storage.domain.clock import SystemClock

router = APIRouter(prefix="/ui/audit", include_in_schema=False, route_class=PageRoute)

READ = Depends(may_all(Action.AUDIT_READ))
Seq = Annotated[int | None, Query(ge=0)]
Seconds = Annotated[int | None, Query(ge=1, le=limits.DAY_MS)]
_CLOCK = SystemClock()


@router.get("", dependencies=[READ])
async def list_entries(
    context: Context,
    who: Words = "",
    operation: Words = "",
    about: Words = "",
    within: Seconds = None,
    all_namespaces: Annotated[bool, Query(alias="all")] = False,
    after: Seq = None,
) -> Response:
    """List entries, the newest first."""
    everywhere = all_namespaces and context.principal.all_namespaces
    query = AuditFilter(
        namespace=None if everywhere else context.namespace,
        principal=who or None,
        operation=operation or None,
        resource=about or None,
        since_ms=None if within is None else _CLOCK.now_ms() - within * limits.SECOND_MS,
    )
    entries = await context.storage.audit_log.page(query, after=after, limit=PAGE_ROWS + 1)
    rows, next_seq = first_page(entries, lambda entry: entry.seq)
    return context.render(
        "audit.html",
        rows=[(entry, differences(entry)) for entry in rows],
        operations=sorted({entry.call.operation for entry in rows}),
        filters={"who": who, "operation": operation, "about": about, "within": within},
        all_namespaces=everywhere,
        after=after,
        more=next_seq,
    )


def differences(entry: AuditRecord) -> list[tuple[str, Any, Any]]:
    """Return the changed fields with their values before and after; None for no value."""
    before, after = entry.before or {}, entry.after or {}
    names = dict.fromkeys((*before, *after))
    changed = [(name, before.get(name), after.get(name)) for name in names]
    return [(name, was, now) for name, was, now in changed if was != now and name not in _QUIET]


_QUIET = frozenset({"version", "changed_at"})
