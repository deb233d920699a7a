"""Address of the primary that Sentinel names, for programs with synchronous connections."""

from typing import Any, cast
from urllib.parse import quote

from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry
from redis.sentinel import Sentinel

from storage.domain import limits
from storage.domain.errors import StorageUnavailable
from storage.domain.replication.member_urls import join_address
from storage.domain.replication.sentinel_url import SentinelUrl, parse_sentinel_url


def watched_url(url: str) -> str:
    """Return the plain URL of the primary. Raises StorageUnavailable, ValueError."""
    parsed = parse_sentinel_url(url)
    wait_s = limits.SENTINEL_REPLY_MS_MAX / limits.SECOND_MS
    options = parsed.sentinel_options(wait_s) | {"retry": Retry(NoBackoff(), 0)}
    watching: Any = cast(Any, Sentinel)(parsed.sentinels, sentinel_kwargs=options)
    try:
        host, port = watching.discover_master(parsed.name)
    except (RedisError, OSError):
        raise StorageUnavailable("No Sentinel knows the primary.") from None
    finally:
        for sentinel in watching.sentinels:
            sentinel.close()
    return _plain_url(parsed, join_address(host, port))


def _plain_url(parsed: SentinelUrl, address: str) -> str:
    scheme = "rediss" if parsed.is_tls else "redis"
    user = ""
    if parsed.password is not None:
        user = f"{quote(parsed.username or '', safe='')}:{quote(parsed.password, safe='')}@"
    return f"{scheme}://{user}{address}/{parsed.db}"
