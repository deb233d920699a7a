"""Settings of storage, which the API reads from the environment and passes in."""

import re
from collections.abc import Collection, Mapping
from typing import Literal
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from pydantic import BaseModel, ConfigDict, Field

from storage.domain import limits
from storage.domain.replication.member_urls import has_several_hosts, member_addresses
from storage.domain.replication.replica_set import majority
from storage.domain.replication.sentinel_url import is_sentinel_url, parse_sentinel_url

Durability = Literal["always", "everysec", "replicated"]
ReplicatedBy = Literal["members", "engine"]

_HOST = re.compile(r"(\[[^\[\]]+\]|[^:\[\]]+)(?::([0-9]{1,5}))?")

S3_OPTIONS = ("region", "endpoint_override", "scheme")
"""Options of a bucket in the query of an archive's URL."""


class StorageSettings(BaseModel):
    """Addresses of the two stores, and how they are used.

    `durability` is a named property of the deployment: with `always` an acknowledged write is on disk,
    with `everysec` a power cut may lose the last second or two, with `replicated` it is on the disks of
    `min_insync_replicas` stores, by default of a majority of them; `replicated_by` tells whether the stores of
    `redis_url` are a replica set of ours, or one engine that keeps this promise by itself. `store_zones` has the zones of members by address, as far as they are known. `archive_url` is the archive's root, a
    directory (`file:///…`) or a path in an object store (`s3://bucket/prefix`); without one nothing is
    archived, and streams keep everything hot. `secret_keys` encrypt secrets that must be used again
    (`storage.access.secret_box`); without any, no such secret can be stored. `webhook_allow` are the destinations of webhooks
    allowed beside the public internet, in the syntax of `storage.domain.access.egress`.
    """

    model_config = ConfigDict(frozen=True)

    redis_url: str
    database_url: str
    durability: Durability = "always"
    min_insync_replicas: int | None = None
    replicated_by: ReplicatedBy = "members"
    store_zones: Mapping[str, str] = Field(default={})
    postgres_connections_max: int = 8
    postgres_grace_ms: int = limits.POSTGRES_GRACE_MS
    archive_url: str | None = None
    secret_keys: tuple[str, ...] = Field(default=(), repr=False)
    webhook_allow: tuple[str, ...] = ()

    @property
    def fsync(self) -> str:
        """Return the `appendfsync` that the durability requires of each store."""
        return "everysec" if self.durability == "everysec" else "always"

    @property
    def min_insync(self) -> int:
        """Return how many members of a new replica set must have a write: by default a majority."""
        return self.min_insync_replicas or majority(len(member_addresses(self.redis_url)))

    @property
    def has_replica_set(self) -> bool:
        """Return whether the hot store is a replica set, whose primary Postgres names."""
        return self.durability == "replicated" and self.replicated_by == "members"


def check_durability(settings: StorageSettings) -> None:
    """Raise ValueError when the hosts of the hot store cannot keep the durability."""
    several = has_several_hosts(settings.redis_url)
    members = member_addresses(settings.redis_url) if several else ()
    if settings.durability == "replicated" and is_sentinel_url(settings.redis_url):
        raise ValueError(
            "durability=replicated is not possible with Sentinel, whose fail-over loses acknowledged writes: name the"
            " stores themselves in redis_url"
        )
    if not settings.has_replica_set:
        if members:
            raise ValueError("redis_url names several hosts, which need durability=replicated")
        if settings.min_insync_replicas is not None:
            raise ValueError("min_insync_replicas needs durability=replicated, by members")
        return
    if not members:
        raise ValueError(
            "durability=replicated needs the hosts of two or more stores in redis_url, or replicated_by=engine"
            " for an engine that replicates before it answers"
        )
    if settings.min_insync_replicas and settings.min_insync_replicas > len(members):
        raise ValueError(f"min_insync_replicas is higher than the number of stores, {len(members)}")


class InvalidUrl(ValueError):
    """A store's address has an option that its driver does not support, or cannot parse."""


def check_redis_url(url: str) -> None:
    """Raise ValueError for an invalid Valkey or Redis address.

    The error does not repeat the address, which may contain a password.
    """
    if has_several_hosts(url):
        member_addresses(url)
    elif is_sentinel_url(url):
        parse_sentinel_url(url)
    else:
        _check(url, ("redis", "rediss", "unix"), "redis://:password@host:6379/0")


def check_database_url(url: str) -> None:
    """Raise ValueError for an invalid Postgres address, without repeating it.

    A driver in the scheme, as SQLAlchemy has it, is ignored.
    """
    kind, _, rest = hosts_as_parameters(url).partition("://")
    address = f"{kind.partition('+')[0]}://{rest}"
    _check(address, ("postgresql", "postgres"), "postgresql://user:password@host:5432/database")


def hosts_as_parameters(url: str) -> str:
    """Write several hosts of a Postgres address as parameters, which every driver accepts.

    `//u:p@a:1,b/db` becomes `//u:p@/db?host=a,b&port=1,5432`; other addresses stay. Raises ValueError.
    """
    scheme, _, rest = url.partition("://")
    end = next((index for index, sign in enumerate(rest) if sign in "/?#"), len(rest))
    user, separator, hosts = rest[:end].rpartition("@")
    if "," not in hosts:
        return url
    addresses = [_HOST.fullmatch(address) for address in hosts.split(",")]
    if not all(addresses):
        raise ValueError(
            "cannot be parsed: use postgresql://user:password@one:5432,two:5432/database"
        )
    pairs = [address.groups() for address in addresses if address]
    path, _, query = rest[end:].partition("?")
    parameters = {
        "host": ",".join(unquote(host).strip("[]") for host, _ in pairs),
        "port": ",".join(port or "5432" for _, port in pairs),
    }
    if any(name in parameters for name, _ in parse_qsl(query)):
        raise ValueError("the address and its parameters both have hosts or ports: use one of them")
    return (
        f"{scheme}://{user}{separator}{path}?{urlencode(parameters)}{'&' if query else ''}{query}"
    )


def check_archive_url(url: str) -> None:
    """Raise ValueError for a URL that names neither a directory nor a bucket.

    `storage.parquet.object_store` reads these URLs.
    """
    _check(url, ("file", "s3"), "file:///directory or s3://bucket/prefix")
    parts = urlsplit(url)
    has_path = parts.path.startswith("/") and parts.path != "/"
    is_directory = parts.scheme == "file" and parts.netloc in ("", "localhost") and has_path
    is_bucket = parts.scheme == "s3" and bool(parts.hostname)
    if not is_directory and not is_bucket:
        raise ValueError("an archive URL must be file:///directory or s3://bucket/prefix")
    if is_bucket and (unknown := dict(parse_qsl(parts.query)).keys() - set(S3_OPTIONS)):
        raise ValueError(
            f"unknown archive URL option {min(unknown)}; the options are {', '.join(S3_OPTIONS)}"
        )


def _check(url: str, schemes: Collection[str], example: str) -> None:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError for a port that is not a number
    except ValueError:
        parts = None
    if parts is None or parts.fragment or parts.netloc.count("@") > 1:
        raise ValueError(
            f"cannot be parsed: use {example}, with %40 for an @ in the password, %2F for a /, %23 for a #"
        )
    if parts.scheme not in schemes:
        raise ValueError(f"use {example}")
