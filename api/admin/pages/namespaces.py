"""Namespaces: the tenants, their quotas, and which of them is looked at."""

from fastapi import APIRouter, Depends, Request, Response

from api.admin.error_pages import PageRoute
from api.admin.lists import PAGE_ROWS, Words
from api.admin.rendering import render
from api.native.dependencies import PrincipalDep, StorageDep, may_all
from storage.domain.access.permissions import Action
from storage.domain.errors import Forbidden

router = APIRouter(prefix="/ui/namespaces", include_in_schema=False, route_class=PageRoute)

MANAGE = Depends(may_all(Action.ADMIN_NAMESPACES))


@router.get("", dependencies=[MANAGE])
async def list_namespaces(
    request: Request,
    storage: StorageDep,
    principal: PrincipalDep,
    q: Words = "",
    after: Words = "",
) -> Response:
    """List all namespaces, for administrators of all of them."""
    if not principal.all_namespaces:
        raise Forbidden("Only administrators of all namespaces can view namespaces.")
    namespaces = await storage.namespaces.list(prefix=q, after=after, limit=PAGE_ROWS + 1)
    return render(
        request,
        "namespaces.html",
        rows=namespaces[:PAGE_ROWS],
        more=namespaces[PAGE_ROWS - 1].name if len(namespaces) > PAGE_ROWS else None,
        q=q,
        after=after,
        manages=True,
    )
