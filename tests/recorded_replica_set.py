"""A replica set that records its verbs, for the routes and pages above it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from api.config.settings import Settings
from storage.bootstrap import Storage
from storage.domain.errors import ReplicaSetRefused
from storage.domain.limits import Limits
from storage.domain.replication.replica_set import (
    MemberRole,
    MemberState,
    MemberStatus,
    Phase,
    ReplicaSet,
    ReplicaSetStatus,
    StorePosition,
)
from storage.hot_store.members import WriteOutcome
from storage.operations.store_admin import StoreAdmin
from tests.websocket_client import Server, running_server

FIRST, SECOND, THIRD = "127.0.0.1:7001", "127.0.0.1:7002", "[::1]:7003"


class RecordedReplicaSet:
    """A replica set that records its verbs; the real one is tested in `replication`."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.replica_set = ReplicaSet(
            members=(FIRST, SECOND, THIRD),
            primary=FIRST,
            term=9,
            epoch=8,
            phase=Phase.NORMAL,
            min_insync_replicas=2,
        )

    async def status(self) -> ReplicaSetStatus:
        position = StorePosition(8, 81234)
        copy: dict[str, Any] = {"state": MemberState.INSYNC, "position": position, "lag_bytes": 0}
        members = (
            MemberStatus(address=FIRST, role=MemberRole.PRIMARY, full_resyncs=2, **copy),
            MemberStatus(address=SECOND, role=MemberRole.REPLICA, **copy),
            MemberStatus(address=THIRD, role=MemberRole.AWAY, state=MemberState.AWAY),
        )
        return ReplicaSetStatus(
            replica_set=self.replica_set, members=members, unknown_replicas=("10.0.0.9:6379",)
        )

    async def current(self) -> ReplicaSet:
        return self.replica_set

    async def confirm_write(self) -> WriteOutcome:
        return WriteOutcome.CONFIRMED

    async def switch_over(self, to: str | None = None) -> ReplicaSet:
        return self._record("switch_over", to)

    async def replace(self, old: str, new: str) -> ReplicaSet:
        return self._record("replace", old, new)

    async def add(self, address: str) -> ReplicaSet:
        return self._record("add", address)

    async def remove(self, address: str) -> ReplicaSet:
        return self._record("remove", address)

    async def set_min_insync(self, count: int) -> ReplicaSet:
        return self._record("set_min_insync", count)

    async def recover(self, source: str, *, accept_loss: bool) -> ReplicaSet:
        return self._record("recover", source, accept_loss)

    def _record(self, *call: Any) -> ReplicaSet:
        self.calls.append(call)
        if call[-1] == "gone:1":
            raise ReplicaSetRefused("gone:1 is not a member.")
        return self.replica_set


@asynccontextmanager
async def serving_replica_set(
    storage: Storage, replica_set: RecordedReplicaSet, data: Path, auth: Literal["open", "keys"]
) -> AsyncGenerator[Server]:
    """Serve a storage as if its store were this replica set."""
    one = storage.stores
    stores = StoreAdmin(one._store, one._identities, one._settings, replica_set)
    stores.durability = "replicated"
    replicated = replace(storage, stores=stores)
    async with running_server(replicated, Limits(), Settings(auth=auth, data=data)) as server:
        yield server
