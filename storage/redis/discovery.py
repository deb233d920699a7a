"""Discovery of a replica set's primary by its members, for programs without Postgres.

A member that believes itself the primary may be an old one that was cut off: the one of the highest epoch is taken, and
readers still wait for its replicas (`storage.redis.transport.replicated_flush`).
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from storage.domain import limits
from storage.domain.errors import StorageUnavailable
from storage.domain.replication.member_urls import has_several_hosts, member_addresses, member_url
from storage.domain.replication.replica_set import Phase, ReplicaSet, majority
from storage.domain.replication.sentinel_url import is_sentinel_url
from storage.redis.keys import STORE_KEY
from storage.redis.transport.sentinel import watched_url


class _Report(NamedTuple):
    epoch: int
    position: int
    address: str
    min_insync: int
    is_primary: bool


def discover_replica_set(redis_url: str) -> ReplicaSet:
    """Return the replica set of a URL with several hosts, as its members report it.

    Raises StorageUnavailable if none of them is a primary.
    """
    addresses = member_addresses(redis_url)
    primary = _primary(_reports(redis_url, addresses))
    return ReplicaSet(
        members=addresses,
        primary=primary.address,
        term=primary.epoch,
        epoch=primary.epoch,
        phase=Phase.NORMAL,
        min_insync_replicas=primary.min_insync or majority(len(addresses)),
    )


def backup_url(redis_url: str) -> str:
    """Return the URL of a store that has everything acknowledged up to now.

    Preferably a replica, so that the copy does not slow the primary. Raises
    StorageUnavailable if no store of a replica set is a primary, or no Sentinel knows it.
    """
    if is_sentinel_url(redis_url):
        return watched_url(redis_url)
    if not has_several_hosts(redis_url):
        return redis_url
    addresses = member_addresses(redis_url)
    primary = _primary(_reports(redis_url, addresses))
    replicas = [
        report
        for report in _reports(redis_url, addresses)
        if not report.is_primary
        and (report.epoch, report.position) >= (primary.epoch, primary.position)
    ]
    return member_url(redis_url, max([*replicas, primary], key=_is_replica).address)


def _is_replica(report: _Report) -> bool:
    return not report.is_primary


def _primary(reports: Sequence[_Report]) -> _Report:
    primaries = [report for report in reports if report.is_primary]
    if not primaries:
        raise StorageUnavailable("No store of the replica set is a primary now; try again.")
    return max(primaries)


def _reports(redis_url: str, addresses: Sequence[str]) -> list[_Report]:
    """Return the state of the members that answer and have data."""
    with ThreadPoolExecutor(len(addresses)) as threads:
        reports = threads.map(lambda address: _report(redis_url, address), addresses)
        return [report for report in reports if report is not None]


def _report(redis_url: str, address: str) -> _Report | None:
    wait_s = limits.REPLICAS_CONNECT_MS_MAX / limits.SECOND_MS
    client: Any = Redis.from_url(
        member_url(redis_url, address),
        protocol=2,
        decode_responses=True,
        socket_timeout=wait_s,
        socket_connect_timeout=wait_s,
        retry=Retry(NoBackoff(), 0),
    )
    try:
        with client:
            role, *_ = client.execute_command("ROLE")
            epoch, position, min_insync = client.hmget(
                STORE_KEY, ["epoch", "position", "min_insync"]
            )
    except (RedisError, OSError):
        return None
    if epoch is None:
        return None
    return _Report(int(epoch), int(position or 0), address, int(min_insync or 0), role == "master")
