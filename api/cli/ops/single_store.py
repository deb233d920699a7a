"""Command `store replace --single`: the first of replicated stores continues alone.

    lock ▸ stores and Postgres run ▸ the first store has everything? ▸ Postgres forgets the replica set ▸ they stop
         ▸ the other stores' directories are removed ▸ DATA/stores.json is removed

Each step can be repeated: a command that was interrupted is run again.
"""

import asyncio
from contextlib import ExitStack
from pathlib import Path

from api.cli.errors import CliError, ExitCode
from api.cli.shell.interrupts import ended_by_sigterm
from api.cli.up.data_directory import acquire_lock, check_version, in_use, mark_single
from api.cli.up.local_stores import store_servers, store_settings
from api.config.settings import Settings
from storage.domain.errors import ReplicaSetRefused, StorageUnavailable
from storage.embedded.errors import EmbeddedServerError
from storage.embedded.replicated_stores import StoreRecord, read_record, remove_record
from storage.embedded.servers import running
from storage.hot_store_bootstrap import leave_replica_set

IN_USE = "a Millstream is running on {data}: stop it first"
NOT_REPLICATED = "{data} has no replicated stores"
HINT = "Start it with `millstream up`, wait until `millstream store status` shows all stores in sync, and stop it again."


def become_single(settings: Settings) -> Path:
    """Go on with the first store of the data directory; return the directory. Raises CliError."""
    data = settings.data.resolve()
    if settings.redis_url is not None:
        raise CliError("REDIS_URL names stores elsewhere: unset it", ExitCode.USAGE)
    if in_use(data):
        raise CliError(IN_USE.format(data=data), ExitCode.UNAVAILABLE)
    try:
        record = read_record(data)
        if record is None:
            raise CliError(NOT_REPLICATED.format(data=data), ExitCode.USAGE)
        with ended_by_sigterm(), acquire_lock(data):
            check_version(data)
            _dissolve(settings, data, record)
            remove_record(data, record)
            mark_single(data)
    except EmbeddedServerError as error:
        raise CliError(str(error), ExitCode.UNAVAILABLE) from None
    return data


def _dissolve(settings: Settings, data: Path, record: StoreRecord) -> None:
    """Run the stores, and end their replica set. Raises CliError, EmbeddedServerError."""
    unlimited = settings.model_copy(update={"memory_mb": 0})  # data of any size is loaded
    with ExitStack() as stack:
        for server in store_servers(unlimited, data):
            stack.enter_context(running(server))
        stores = settings.model_copy(update=store_settings(settings, data))
        try:
            asyncio.run(leave_replica_set(stores.storage(), record.addresses[0]))
        except ReplicaSetRefused as error:
            raise CliError(f"{error.detail} {HINT}") from None
        except StorageUnavailable as error:
            raise CliError(error.detail, ExitCode.UNAVAILABLE) from None
