"""Settings of storage, which the API reads from the environment and passes in."""

from collections.abc import Collection
from typing import Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, ConfigDict, Field

Durability = Literal["always", "everysec"]

S3_OPTIONS = ("region", "endpoint_override", "scheme")
"""Options of a bucket in the query of an archive's URL."""


class StorageSettings(BaseModel):
    """Addresses of the two stores, and how they are used.

    `durability` is a named property of the deployment: with `always` an acknowledged write is on disk,
    with `everysec` a power cut may lose the last second or two. `archive_url` is the archive's root, a
    directory (`file:///…`) or a path in an object store (`s3://bucket/prefix`); without one nothing is
    archived, and streams keep everything hot. `secret_keys` encrypt secrets that must be used again
    (`storage.access.secret_box`); without any, no such secret can be stored. `webhook_allow` are the destinations of webhooks
    allowed beside the public internet, in the syntax of `storage.domain.access.egress`.
    """

    model_config = ConfigDict(frozen=True)

    redis_url: str
    database_url: str
    durability: Durability = "always"
    postgres_connections_max: int = 8
    archive_url: str | None = None
    secret_keys: tuple[str, ...] = Field(default=(), repr=False)
    webhook_allow: tuple[str, ...] = ()


class InvalidUrl(ValueError):
    """A store's address has an option that its driver does not support, or cannot parse."""


def check_redis_url(url: str) -> None:
    """Raise ValueError for an invalid Valkey or Redis address.

    The error does not repeat the address, which may contain a password.
    """
    _check(url, ("redis", "rediss", "unix"), "redis://:password@host:6379/0")


def check_database_url(url: str) -> None:
    """Raise ValueError for an invalid Postgres address, without repeating it.

    A driver in the scheme, as SQLAlchemy has it, is ignored.
    """
    kind, _, rest = url.partition("://")
    address = f"{kind.partition('+')[0]}://{rest}"
    _check(address, ("postgresql", "postgres"), "postgresql://user:password@host:5432/database")


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
