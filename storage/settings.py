"""What the storage room needs to know. The front door reads the environment and hands this in."""

from collections.abc import Collection
from typing import Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, ConfigDict, Field

Durability = Literal["always", "everysec"]

S3_OPTIONS = ("region", "endpoint_override", "scheme")
"""What the query of an archive's URL may say of its bucket."""


class StorageSettings(BaseModel):
    """Where the two stores are, and how they are used.

    `durability` is a named property of the deployment: with `always` an acknowledged write is on disk,
    with `everysec` a power cut may lose the last second or two. `archive_url` is the archive's root, a
    directory (`file:///…`) or a place in an object store (`s3://bucket/prefix`); without one nothing is
    archived, and streams keep everything hot. `secret_keys` encrypt what must be kept secret and used again, as
    `storage.access.secret_box` says; without any, nothing of that kind can be kept. `webhook_allow` is where webhooks
    may go beside the public internet, in the words of `storage.domain.access.egress`.
    """

    model_config = ConfigDict(frozen=True)

    redis_url: str
    database_url: str
    durability: Durability = "always"
    postgres_connections_max: int = 8
    archive_url: str | None = None
    secret_keys: tuple[str, ...] = Field(default=(), repr=False)
    webhook_allow: tuple[str, ...] = ()


class AddressUnusable(ValueError):
    """The address of a store has an option that its driver does not know, or cannot read."""


def check_redis_url(url: str) -> None:
    """Raise ValueError for what is no address of a Valkey or Redis. It does not repeat the address: that may hold a password."""
    _check(url, ("redis", "rediss", "unix"), "redis://:password@host:6379/0")


def check_database_url(url: str) -> None:
    """As `check_redis_url`, for a Postgres. A driver that the scheme names, as SQLAlchemy has it, is passed over."""
    kind, _, rest = url.partition("://")
    address = f"{kind.partition('+')[0]}://{rest}"
    _check(address, ("postgresql", "postgres"), "postgresql://user:password@host:5432/database")


def check_archive_url(url: str) -> None:
    """Raise ValueError for what names neither a directory nor a bucket, as `storage.parquet.object_store` reads them."""
    _check(url, ("file", "s3"), "file:///directory or s3://bucket/prefix")
    parts = urlsplit(url)
    has_path = parts.path.startswith("/") and parts.path != "/"
    is_directory = parts.scheme == "file" and parts.netloc in ("", "localhost") and has_path
    is_bucket = parts.scheme == "s3" and bool(parts.hostname)
    if not is_directory and not is_bucket:
        raise ValueError("an archive's URL is file:///directory or s3://bucket/prefix")
    if is_bucket and (unknown := dict(parse_qsl(parts.query)).keys() - set(S3_OPTIONS)):
        raise ValueError(f"an archive's URL takes {', '.join(S3_OPTIONS)}, not {min(unknown)}")


def _check(url: str, schemes: Collection[str], example: str) -> None:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError for what is no number
    except ValueError:
        parts = None
    if parts is None or parts.fragment or parts.netloc.count("@") > 1:
        raise ValueError(
            f"it cannot be read: say {example}, with %40 for an @ in the password, %2F for a /, %23 for a #"
        )
    if parts.scheme not in schemes:
        raise ValueError(f"say {example}")
