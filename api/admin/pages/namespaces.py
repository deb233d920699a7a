"""Namespaces: the tenants, their quotas, and which of them is looked at."""

from fastapi import APIRouter, Depends, Response

from api.admin.error_pages import PageRoute
from api.admin.lists import PAGE_ROWS, Words, first_page
from api.admin.rendering import Context
from api.native.dependencies import may_all
from storage.domain.access.permissions import Action
from storage.domain.errors import Forbidden

router = APIRouter(prefix="/ui/namespaces", include_in_schema=False, route_class=PageRoute)

MANAGE = Depends(may_all(Action.ADMIN_NAMESPACES))


@router.get("", dependencies=[MANAGE])
async def list_namespaces(context: Context, q: Words = "", after: Words = "") -> Response:
    """List all namespaces, for administrators of all of them."""
    if not context.principal.all_namespaces:
        raise Forbidden("Only administrators of all namespaces can view namespaces.")
    namespaces = await context.storage.namespaces.list(prefix=q, after=after, limit=PAGE_ROWS + 1)
    rows, next_name = first_page(namespaces, lambda namespace: namespace.name)
    return context.render(
        "namespaces.html", rows=rows, more=next_name, q=q, after=after, manages=True
    )
