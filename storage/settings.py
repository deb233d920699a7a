"""What the storage room needs to know. The front door reads the environment and hands this in."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Durability = Literal["always", "everysec"]


class StorageSettings(BaseModel):
    """Where the two stores are, and how they are used.

    `durability` is a named property of the deployment: with `always` an acknowledged write is on disk,
    with `everysec` a power cut may lose the last second or two. `archive_url` is the archive's root, a
    directory (`file:///…`) or a place in an object store (`s3://bucket/prefix`); without one nothing is
    archived, and streams keep everything hot. `secret_keys` encrypt what must be kept secret and used again, as
    `storage.secrets` says; without any, nothing of that kind can be kept. `webhook_allow` is where webhooks
    may go beside the public internet, in the words of `storage.domain.egress`.
    """

    model_config = ConfigDict(frozen=True)

    redis_url: str
    database_url: str
    durability: Durability = "always"
    postgres_connections_max: int = 8
    archive_url: str | None = None
    secret_keys: tuple[str, ...] = Field(default=(), repr=False)
    webhook_allow: tuple[str, ...] = ()
