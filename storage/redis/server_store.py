"""One server of the hot store: its identity, its configuration and its figures."""

from typing import Any

import attrs
from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from storage.domain import limits
from storage.domain.backup_manifest import RESTORING, RestoreUnfinished
from storage.domain.errors import NotEnoughReplicas, StorageUnavailable
from storage.domain.log.store_epoch import StoreFacts, StoreIdentity
from storage.domain.store_status import HotConfiguration, HotFigures, HotReport, SlowCommand
from storage.redis.keys import LAYOUT, STORE_KEY, VERSION_KEY
from storage.redis.transport.client import unreachable

SLOW_COMMANDS_MAX = 10
_CATALOG = "catalog"
_NO_REPLID = {"0" * 40, "0"}  # the client reads forty zeros as a number


class LayoutUnknown(StorageUnavailable):
    """The store was written by another version of Millstream, with an unknown layout."""


@attrs.define(eq=False, slots=False)
class HotServer:
    """Queries to one server that do not concern a single log. All raise StorageUnavailable.

    `storage.redis.cluster_store` combines them for the store as a whole.
    """

    _client: Redis
    _store_key: str = STORE_KEY
    _version_key: str = VERSION_KEY

    async def run_id(self) -> str:
        """Return the id of the server process, which changes after a restart."""
        return str((await self._info("server"))["run_id"])

    async def facts(self, remembered: StoreIdentity) -> StoreFacts:
        """Return the server's state for `needs_new_epoch`."""
        replication = await self._info("replication")
        recorded = await self._run(self._client.hgetall(self._store_key))
        replid = str(replication["master_replid"])
        return StoreFacts(
            epoch=int(recorded.get("epoch", 0)),
            beacon=int(recorded.get("beacon", 0)),
            replid=replid,
            promoted=str(replication.get("master_replid2", 0)) not in _NO_REPLID,
            fsync_always=await self._setting("appendfsync") == "always"
            and await self._setting("appendonly") == "yes",
            restarted=replid != remembered.replid,
        )

    async def check_layout(self) -> None:
        """Mark an empty store with our layout.

        Raises LayoutUnknown when it has another, RestoreUnfinished when a restore of a backup is not complete.
        """
        await self._run(self._client.setnx(self._version_key, LAYOUT))
        layout = await self._run(self._client.get(self._version_key))
        if layout == RESTORING:
            raise RestoreUnfinished
        if layout != LAYOUT:
            raise LayoutUnknown(
                f"The store has layout {layout}; this version of Millstream supports {LAYOUT}."
            )

    async def is_restoring(self) -> bool:
        """Return whether a backup is being restored into it, or was not restored completely."""
        return bool(await self._run(self._client.get(self._version_key)) == RESTORING)

    async def write_epoch(self, epoch: int, beacon: int) -> None:
        """Mark the store with its epoch."""
        await self._run(
            self._client.hset(self._store_key, mapping={"epoch": epoch, "beacon": beacon})
        )

    async def beat(self) -> int:
        """Increment the beacon, and return it."""
        return int(await self._run(self._client.hincrby(self._store_key, "beacon", 1)))

    async def catalog_version(self) -> int:
        """Return the version of the catalog."""
        return int(await self._run(self._client.hget(self._store_key, _CATALOG)) or 0)

    async def raise_catalog_version(self, at_least: int, replicas: int) -> int:
        """Raise the version of the catalog; return it once so many replicas have it.

        Raises NotEnoughReplicas.
        """
        version = int(await self._run(self._client.hincrby(self._store_key, _CATALOG, 1)))
        missing = max(0, at_least - version)
        flush = self._client.pipeline(transaction=False)
        flush.hincrby(self._store_key, _CATALOG, missing)
        if replicas:
            flush.execute_command("WAIT", replicas, limits.REPLICAS_CONNECT_MS_MAX)
        raised, *received = await self._run(flush.execute())
        if any(count < replicas for count in received):
            raise NotEnoughReplicas
        return int(raised)

    async def ping(self) -> str:
        """Return 'ok', or the problem: a full disk makes even PING fail."""
        if not await self._run(self._client.ping()):
            return "no response"
        role = (await self._info("replication"))["role"]
        return "ok" if role == "master" else f"the server is a {role}"

    async def configuration(self) -> HotConfiguration:
        """Return the server's configuration."""
        info: dict[str, Any] = await self._run(self._client.info())
        return HotConfiguration(
            flavor=_flavor(info),
            version=_version(info),
            redis_version=str(info["redis_version"]),
            is_append_only=info["aof_enabled"] == 1,
            last_append=str(info.get("aof_last_write_status")),
            fsync=await self._setting("appendfsync"),
            eviction_policy=await self._setting("maxmemory-policy") or info.get("maxmemory_policy"),
        )

    async def report(self) -> HotReport:
        """Return the server's configuration, memory and clock."""
        link = (await self._info("replication")).get("master_link_status")
        used_bytes, max_bytes = await self.memory()
        return HotReport(
            configuration=await self.configuration(),
            memory_used_bytes=used_bytes,
            memory_max_bytes=max_bytes,
            is_linked=link in (None, "up"),
            time_ms=await self.time_ms(),
        )

    async def _setting(self, name: str) -> str | None:
        """Return a configuration value, or None where CONFIG is not allowed."""
        try:
            return dict(await self._client.config_get(name)).get(name)
        except ResponseError:
            return None
        except (RedisError, OSError) as error:
            raise unreachable(error) from None

    async def memory(self) -> tuple[int, int]:
        """Return used and maximum bytes of the server's data; 0 for no limit.

        The buffers of its replicas and of its append-only file do not count, nor does the server count them when it refuses
        writes.
        """
        info = await self._info("memory")
        used = int(info["used_memory"]) - int(info.get("mem_not_counted_for_evict", 0))
        return used, int(info.get("maxmemory", 0))

    async def figures(self) -> HotFigures:
        """Return the server's figures."""
        info: dict[str, Any] = await self._run(self._client.info())
        size = info.get("db0", {})
        return HotFigures(
            flavor=_flavor(info),
            version=_version(info),
            role=str(info["role"]),
            uptime_s=int(info["uptime_in_seconds"]),
            memory_used_bytes=int(info["used_memory"]),
            memory_max_bytes=int(info.get("maxmemory") or 0),
            fragmentation=float(info.get("mem_fragmentation_ratio", 0)),
            clients=int(info["connected_clients"]),
            commands_per_second=int(info["instantaneous_ops_per_sec"]),
            keys=int(size.get("keys", 0)),
            aof_bytes=int(info.get("aof_current_size", 0)),
            aof_ok=info["aof_enabled"] == 1 and info.get("aof_last_write_status") == "ok",
            evicted_keys=int(info["evicted_keys"]),
        )

    async def slow_commands(self) -> tuple[SlowCommand, ...] | None:
        """Return the latest entries of the slow log, or None where it may not be read."""
        try:
            entries = await self._client.slowlog_get(SLOW_COMMANDS_MAX)
        except ResponseError:
            return None
        except (RedisError, OSError) as error:
            raise unreachable(error) from None
        return tuple(
            SlowCommand(
                int(entry["start_time"]) * 1000, int(entry["duration"]), _name_of(entry["command"])
            )
            for entry in entries
        )

    async def time_ms(self) -> int:
        """Return the server's clock."""
        seconds, micros = await self._run(self._client.time())
        return int(seconds) * 1000 + int(micros) // 1000

    async def _info(self, section: str) -> dict[str, Any]:
        values: dict[str, Any] = await self._run(self._client.info(section))
        return values

    async def _run(self, command: Any) -> Any:
        try:
            return await command
        except (RedisError, OSError) as error:
            raise unreachable(error) from None


def _flavor(info: dict[str, Any]) -> str:
    return str(info.get("server_name", "redis"))


def _version(info: dict[str, Any]) -> str:
    return str(info.get("valkey_version") or info["redis_version"])


def _name_of(command: Any) -> str:
    """Return a command's name without its arguments, which are data of callers."""
    text = command.decode("latin-1") if isinstance(command, bytes) else str(command)
    return text.split(" ", 1)[0].upper()
