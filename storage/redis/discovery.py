"""Discovery of a replica set's primary by its members, for programs without Postgres.

A member that believes itself the primary may be an old one that was cut off: the one of the highest epoch is taken, and
readers still wait for its replicas (`storage.redis.transport.replicated_flush`).
"""

from collections.abc import Iterator
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
    address: str
    min_insync: int


def discover_replica_set(redis_url: str) -> ReplicaSet:
    """Return the replica set of a URL with several hosts, as its members report it.

    Raises StorageUnavailable if none of them is a primary.
    """
    addresses = member_addresses(redis_url)
    with ThreadPoolExecutor(len(addresses)) as threads:
        reports = threads.map(lambda address: [*_reports(redis_url, address)], addresses)
        primaries = [report for found in reports for report in found]
    if not primaries:
        raise StorageUnavailable("No store of the replica set is a primary now; try again.")
    primary = max(primaries)
    return ReplicaSet(
        members=addresses,
        primary=primary.address,
        term=primary.epoch,
        epoch=primary.epoch,
        phase=Phase.NORMAL,
        min_insync_replicas=primary.min_insync or majority(len(addresses)),
    )


def primary_url(redis_url: str) -> str:
    """Return the URL of the primary, or of the only store.

    Raises StorageUnavailable if no store of a replica set is a primary, or no Sentinel knows it.
    """
    if is_sentinel_url(redis_url):
        return watched_url(redis_url)
    if has_several_hosts(redis_url):
        return member_url(redis_url, discover_replica_set(redis_url).primary)
    return redis_url


def _reports(redis_url: str, address: str) -> Iterator[_Report]:
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
            epoch, min_insync = client.hmget(STORE_KEY, ["epoch", "min_insync"])
    except (RedisError, OSError):
        return
    if role == "master" and epoch is not None:
        yield _Report(int(epoch), address, int(min_insync or 0))
