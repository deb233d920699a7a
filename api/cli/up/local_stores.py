"""Private stores of a data directory: their servers, and the settings that name them.

One Valkey on a unix socket, or, from the first `up --replicas` on, several that replicate (DATA/stores.json); and one Postgres.
"""

from pathlib import Path
from typing import Any

from pydantic import SecretStr

from api.cli.errors import CliError, ExitCode
from api.cli.up.data_directory import mark_replicated
from api.config.settings import Settings
from storage.domain import limits
from storage.embedded.control_groups import granted_bytes
from storage.embedded.postgres import PostgresServer
from storage.embedded.replicated_stores import StoreRecord, create_record, members, read_record
from storage.embedded.servers import EmbeddedServer
from storage.embedded.valkey import ValkeyServer

REPLICATED = """\
replicated: {count} stores on this machine, for trying. They do not survive the loss of the machine.
{remembered}
  millstream store status
"""
REMEMBERED = "This data directory keeps them; --replicas is not needed again.\n"
TWO_STORES = "With two stores, writes stop while either of them is away: use --replicas 2.\n"


def store_servers(settings: Settings, data: Path) -> list[EmbeddedServer]:
    """Return the servers of the stores without a URL. Raises CliError, EmbeddedServerError."""
    servers: list[EmbeddedServer] = []
    if settings.redis_url is None:
        servers += _valkeys(settings, data)
    if settings.database_url is None:
        servers.append(PostgresServer(data))
    return servers


def _valkeys(settings: Settings, data: Path) -> list[EmbeddedServer]:
    if (record := read_record(data)) is None:
        return [
            ValkeyServer(
                data,
                durability=settings.durability,
                server=settings.server,
                memory_bytes=memory_bytes(settings),
            )
        ]
    size = memory_bytes(settings, stores=len(record.ports))
    return [*members(data, record, server=settings.server, memory_bytes=size)]


def memory_bytes(settings: Settings, stores: int = 1) -> int:
    """Return the memory limit of each private Valkey in bytes; 0: no limit."""
    if settings.memory_mb is not None:
        return settings.memory_mb * limits.MIB
    share = int(granted_bytes() * limits.MEMORY_SHARE) // stores
    return max(limits.MEMORY_BYTES_MIN, share)


def store_settings(settings: Settings, data: Path) -> dict[str, Any]:
    """Return the settings that name the private stores.

    Raises EmbeddedServerError.
    """
    update: dict[str, Any] = {}
    if settings.redis_url is None:
        record = read_record(data)
        url = ValkeyServer(data, server=settings.server).url if record is None else record.url
        update["redis_url"] = SecretStr(url)
        if record is not None:
            update["durability"] = "replicated"
    if settings.database_url is None:
        update["database_url"] = SecretStr(PostgresServer(data).url)
    return update


def apply_replicas(settings: Settings, data: Path) -> str:
    """Replicate the store of a directory where that is chosen; return the announcement.

    Raises CliError where the settings contradict one another or the directory, EmbeddedServerError.
    """
    if settings.redis_url is not None:
        if settings.replicas is not None:
            raise _refusal(
                "--replicas starts stores on this machine, but REDIS_URL names stores: unset one of them"
            )
        return ""
    record = read_record(data)
    if record is None and settings.replicas is None:
        if settings.durability == "replicated":
            raise _refusal(
                "durability=replicated needs several stores: use --replicas 2, or a REDIS_URL that names them"
            )
        return ""
    if settings.durability == "everysec":
        raise _refusal(
            "durability=everysec cannot be combined with replicated stores, which acknowledge what is on disk"
        )
    if record is None:
        mark_replicated(data)
        return _notice(create_record(data, settings.stores))
    if settings.replicas is not None and settings.stores != len(record.ports):
        raise _refusal(
            f"{data} has {len(record.ports)} stores, and --replicas cannot change their number:"
            " back up and restore into a new data directory"
        )
    return _notice(record, remembered=settings.replicas is None)


def _notice(record: StoreRecord, *, remembered: bool = False) -> str:
    count = len(record.ports)
    sentences = (REMEMBERED if remembered else "") + (TWO_STORES if count == 2 else "")
    return REPLICATED.format(count=count, remembered=sentences)


def _refusal(sentence: str) -> CliError:
    return CliError(sentence, ExitCode.USAGE)
