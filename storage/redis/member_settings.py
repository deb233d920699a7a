"""Settings of the members of a replica set, on which its durability depends."""

import asyncio
from collections.abc import Iterable, Mapping

from redis.exceptions import RedisError

from storage.domain import limits
from storage.domain.replication.member_urls import member_url
from storage.redis.transport.client import open_client

MEMBER_SETTINGS: Mapping[str, str] = {
    "appendonly": "yes",
    "appendfsync": "always",
    "no-appendfsync-on-rewrite": "no",  # otherwise a rewrite suspends fsync
    "maxmemory-policy": "noeviction",
    "repl-ping-replica-period": "1",
    "repl-timeout": "5",
    "repl-diskless-load": "disabled",  # the old data stays until the new is complete
    "min-replicas-to-write": "0",
}
"""Settings that every member must have."""

_SAME = ("maxmemory",)


class MemberSettings:
    """Reader of the members' settings."""

    def __init__(self, redis_url: str) -> None:
        self._url = redis_url

    async def faults(self, addresses: Iterable[str]) -> list[str]:
        """Return what is wrong with the settings of those that answer and permit CONFIG."""
        members = list(addresses)
        replies = await asyncio.gather(*(self._read(address) for address in members))
        settings = {
            address: reply for address, reply in zip(members, replies, strict=True) if reply
        }
        return [
            *(
                f"{address} has {name} {values.get(name)}, not {expected}"
                for address, values in settings.items()
                for name, expected in MEMBER_SETTINGS.items()
                if values.get(name) != expected
            ),
            *(
                f"{name} differs: {', '.join(sorted(different))}"
                for name in _SAME
                if len(different := {str(values.get(name)) for values in settings.values()}) > 1
            ),
        ]

    async def _read(self, address: str) -> Mapping[str, str] | None:
        """Return the settings of a member; None if it does not answer, or does not permit it."""
        client = open_client(member_url(self._url, address))
        try:
            async with asyncio.timeout(limits.MEMBER_REPLY_MS_MAX / limits.SECOND_MS):
                reply = await client.config_get(*MEMBER_SETTINGS, *_SAME)
                return {str(name): str(value) for name, value in reply.items()}
        except (RedisError, OSError, TimeoutError):
            return None
        finally:
            await client.aclose()
