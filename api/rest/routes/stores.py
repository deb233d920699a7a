"""Stores of the deployment: status, and changes of the replica set."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Path

from api.native.audited_route import AuditedRoute
from api.native.dependencies import SettingsDep, StorageDep, acts_everywhere, may_all, require_json
from api.native.examples import Example, Repeat
from api.rest.schemas.store import (
    ADDRESS_PATTERN,
    ReplicaSetOut,
    StoreAddition,
    StoreRecovery,
    StoreReplacement,
    StoresOut,
    StoresPatch,
    SwitchOver,
)
from storage.domain.access.permissions import Action
from storage.embedded.replicated_stores import member_pids

router = APIRouter(prefix="/v1/stores", tags=["stores"], route_class=AuditedRoute)

SEE = [Depends(may_all(Action.STORE_READ)), Depends(acts_everywhere)]
MANAGE = [Depends(may_all(Action.STORE_MANAGE)), Depends(acts_everywhere)]
CHANGE = [*MANAGE, Depends(require_json)]
Target = Annotated[SwitchOver, Body(default_factory=SwitchOver)]
StoreAddress = Annotated[
    str,
    Path(description="`host:port` of a member.", json_schema_extra={"pattern": ADDRESS_PATTERN}),
]


@router.get("", dependencies=SEE)
async def get_stores(storage: StorageDep, settings: SettingsDep) -> StoresOut:
    """Show the stores, their roles, and how far each has the data."""
    status = await storage.stores.status()
    return StoresOut.of(status, storage.stores.durability, member_pids(settings.data))


@router.patch("", dependencies=CHANGE)
async def configure_stores(patch: StoresPatch, storage: StorageDep) -> ReplicaSetOut:
    """Change the number of stores that must have a write before it is acknowledged.

    Raise it before you add stores; remove stores before you lower it.
    """
    replica_set = await storage.stores.replica_set.set_min_insync(patch.min_insync_replicas)
    return ReplicaSetOut.from_domain(replica_set)


@router.post("/switch-over", dependencies=CHANGE)
async def switch_over_stores(target: Target, storage: StorageDep) -> ReplicaSetOut:
    """Make another store the primary, for maintenance of the present one.

    Calls wait meanwhile, for less than a second; nothing is lost, and none fails.
    """
    return ReplicaSetOut.from_domain(await storage.stores.replica_set.switch_over(target.to))


@router.post("/replace", dependencies=CHANGE)
async def replace_store(replacement: StoreReplacement, storage: StorageDep) -> ReplicaSetOut:
    """Replace a permanently lost store by an empty one.

    The new store counts once it has all data. Its configuration must be that of a member.
    """
    replica_set = await storage.stores.replica_set.replace(replacement.old, replacement.new)
    return ReplicaSetOut.from_domain(replica_set)


@router.post("/recover", dependencies=CHANGE)
async def recover_stores(recovery: StoreRecovery, storage: StorageDep) -> ReplicaSetOut:
    """Continue with one store when a majority is permanently lost.

    Acknowledged writes that only the lost stores had are lost; readers receive a gap. Choose the store with the highest epoch
    and position.
    """
    replica_set = await storage.stores.replica_set.recover(
        recovery.source, accept_loss=recovery.accept_loss
    )
    return ReplicaSetOut.from_domain(replica_set)


@router.post("/members", dependencies=CHANGE)
async def add_store(addition: StoreAddition, storage: StorageDep) -> ReplicaSetOut:
    """Add an empty store. It counts once it has all data."""
    return ReplicaSetOut.from_domain(await storage.stores.replica_set.add(addition.address))


@router.delete("/members/{address}", dependencies=MANAGE)
async def remove_store(address: StoreAddress, storage: StorageDep) -> ReplicaSetOut:
    """Remove a store that is not the primary."""
    return ReplicaSetOut.from_domain(await storage.stores.replica_set.remove(address))


# Examples of the OpenAPI document

_FIRST, _SECOND, _THIRD = "store-1:6379", "store-2:6379", "store-3:6379"
_REPLICA_SET = {
    "members": [_FIRST, _SECOND, _THIRD],
    "primary": _SECOND,
    "term": 9,
    "epoch": 9,
    "state": "normal",
    "min_insync_replicas": 2,
}
_MEMBER = {
    "address": _FIRST,
    "role": "primary",
    "state": "insync",
    "epoch": 8,
    "position": 81234,
    "lag_bytes": 0,
    "version": "9.1.2",
    "memory_used_bytes": 104857600,
    "memory_max_bytes": 1073741824,
    "pid": None,
}
_NO_FIGURES = dict.fromkeys(
    ("epoch", "position", "lag_bytes", "version", "memory_used_bytes", "memory_max_bytes")
)

EXAMPLES = {
    "get_stores": Example(
        "/v1/stores",
        answer={
            "durability": "replicated",
            "replication_factor": 3,
            "min_insync_replicas": 2,
            "insync_replicas": 2,
            "primary": _FIRST,
            "term": 8,
            "epoch": 8,
            "state": "normal",
            "members": [
                _MEMBER,
                {**_MEMBER, "address": _SECOND, "role": "replica", "position": 81230},
                {**_MEMBER, "address": _THIRD, "role": "away", "state": "away", **_NO_FIGURES},
            ],
            "unknown_replicas": [],
        },
    ),
    "configure_stores": Example("/v1/stores", {"min_insync_replicas": 2}, answer=_REPLICA_SET),
    "switch_over_stores": Example("/v1/stores/switch-over", {"to": _SECOND}, answer=_REPLICA_SET),
    "replace_store": Example(
        "/v1/stores/replace",
        {"old": "store-9:6379", "new": _THIRD},
        answer=_REPLICA_SET,
        repeat=Repeat.SAFE,
    ),
    "recover_stores": Example(
        "/v1/stores/recover", {"accept_loss": True, "from": _SECOND}, answer=_REPLICA_SET
    ),
    "add_store": Example(
        "/v1/stores/members", {"address": _THIRD}, answer=_REPLICA_SET, repeat=Repeat.SAFE
    ),
    "remove_store": Example("/v1/stores/members/store-9:6379", answer=_REPLICA_SET),
}
