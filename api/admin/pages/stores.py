"""Stores of the deployment: members, replication, and the change of the primary."""

from fastapi import APIRouter, Depends, Response

from api.admin.error_pages import PageRoute
from api.admin.rendering import Context
from api.native.dependencies import acts_everywhere, may_all
from storage.domain.access.permissions import Action
from storage.embedded.replicated_stores import member_pids

router = APIRouter(prefix="/ui/stores", include_in_schema=False, route_class=PageRoute)

SEE = [Depends(may_all(Action.STORE_READ)), Depends(acts_everywhere)]


@router.get("", dependencies=SEE)
async def show_stores(context: Context) -> Response:
    """Show the stores, for administrators of all namespaces."""
    stores = context.storage.stores
    status = await stores.status()
    return context.render(
        "stores.html",
        live=True,
        durability=stores.durability,
        is_replica_set=stores.is_replica_set,
        manages=stores.is_replica_set and context.may(Action.STORE_MANAGE, "*"),
        status=status,
        replica_set=status.replica_set,
        pids=member_pids(context.request.app.state.settings.data),
    )
