"""Addresses of the hot store and the durability that they can keep."""

import pytest

from storage.domain.replication.sentinel_url import is_sentinel_url, parse_sentinel_url
from storage.settings import StorageSettings, check_durability, check_redis_url

ONE, THREE = "redis://:pa,ss@a:6379/0", "redis://:pass@a:6379,b,c:6380/0"
SENTINEL = "redis+sentinel://:pass@a:26379,b/orders"


def settings(redis_url: str, **changes: object) -> StorageSettings:
    return StorageSettings.model_validate(
        {"redis_url": redis_url, "database_url": "postgresql://x/y", **changes}
    )


@pytest.mark.parametrize("url", [ONE, THREE, SENTINEL, "rediss://a,b/0", "unix:///run/valkey.sock"])
def test_address_of_hot_store_is_accepted(url):
    check_redis_url(url)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("redis://secret@a,a/0", "a:6379 is listed twice"),
        ("redis://:secret@a,b:x/0", "cannot be parsed"),
        ("redis+sentinel://:secret@a", "cannot be parsed"),
        ("redis+sentinel://:secret@a:x/orders", "address of a Sentinel"),
        ("redis+sentinel://:secret@a/orders?tls=1", "unknown option tls"),
        ("redis+sentinel://:secret@a/orders?db=one", "db is not a number"),
        ("memcached://:secret@a/0", "use redis://"),
    ],
)
def test_invalid_address_is_refused_without_its_password(url, reason):
    with pytest.raises(ValueError, match=reason) as refused:
        check_redis_url(url)

    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "changes"),
    [
        (ONE, {}),
        (ONE, {"durability": "everysec"}),
        (ONE, {"durability": "replicated", "replicated_by": "engine"}),
        (THREE, {"durability": "replicated"}),
        (THREE, {"durability": "replicated", "min_insync_replicas": 3}),
        (SENTINEL, {}),
    ],
)
def test_durability_is_accepted_where_hosts_can_keep_it(url, changes):
    check_durability(settings(url, **changes))


@pytest.mark.parametrize(
    ("url", "changes", "reason"),
    [
        (ONE, {"durability": "replicated"}, "two or more stores"),
        (THREE, {}, "need durability=replicated"),
        (THREE, {"durability": "everysec"}, "need durability=replicated"),
        (THREE, {"durability": "replicated", "min_insync_replicas": 4}, "number of stores, 3"),
        (ONE, {"min_insync_replicas": 2}, "needs durability=replicated"),
        (SENTINEL, {"durability": "replicated"}, "not possible with Sentinel"),
    ],
)
def test_durability_is_refused_where_hosts_cannot_keep_it(url, changes, reason):
    with pytest.raises(ValueError, match=reason):
        check_durability(settings(url, **changes))


def test_majority_of_members_must_be_in_sync_by_default():
    two, three = "redis://a,b/0", THREE

    assert settings(two, durability="replicated").min_insync == 2
    assert settings(three, durability="replicated").min_insync == 2
    assert settings(three, durability="replicated", min_insync_replicas=3).min_insync == 3


def test_sentinel_url_is_parsed():
    url = "rediss+sentinel://user:p%40ss@a:1,[fd00::1]:2,b/orders?db=3&sentinel_password=word"

    parsed = parse_sentinel_url(url)

    assert is_sentinel_url(url)
    assert not is_sentinel_url(THREE)
    assert parsed.sentinels == (("a", 1), ("fd00::1", 2), ("b", 26_379))
    assert (parsed.is_tls, parsed.name, parsed.db) == (True, "orders", 3)
    assert (parsed.username, parsed.password) == ("user", "p@ss")
    assert (parsed.sentinel_username, parsed.sentinel_password) == (None, "word")
