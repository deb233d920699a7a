"""Processes of the deployment."""

from fastapi import APIRouter, Depends

from api.native.dependencies import StorageDep, may_all
from api.native.examples import AT, LATER, PROCESS_ID, Example
from api.native.native_route import NativeRoute
from api.rest.schemas.presence import ProcessList, ProcessOut
from storage.domain.access.permissions import Action

router = APIRouter(prefix="/v1/processes", tags=["processes"], route_class=NativeRoute)

SEE = Depends(may_all(Action.METRICS_READ))


@router.get("", dependencies=[SEE])
async def list_processes(storage: StorageDep) -> ProcessList:
    """List the processes of the deployment by role.

    A killed process is listed for ten more seconds.
    """
    seen = await storage.presence.processes()
    return ProcessList(items=[ProcessOut.from_domain(process) for process in seen])


# Examples of the OpenAPI document

EXAMPLES = {
    "list_processes": Example(
        "/v1/processes",
        answer={
            "items": [
                {
                    "id": PROCESS_ID,
                    "role": "api",
                    "host": "mill-1",
                    "pid": 4711,
                    "version": "0.1.0",
                    "started_at": AT,
                    "seen_at": LATER,
                    "event_loop_lag_seconds": 0.001,
                    "sockets": 1,
                    "sessions": 1,
                    "failing": [],
                    "leads": [],
                }
            ]
        },
    ),
}
