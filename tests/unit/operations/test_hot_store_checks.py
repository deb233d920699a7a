"""Findings of `millstream doctor` about several servers of the hot store."""

import pytest

from storage.domain.store_status import HotConfiguration, HotNode, HotReport
from storage.operations.hot_store_checks import hot_store_findings
from storage.settings import StorageSettings

SETTINGS = StorageSettings(redis_url="redis://a:1", database_url="postgresql://x/y")
NOW_MS = 1_000_000
GIB = 1 << 30


def report(used=0, skew_ms=0, version="9.0.0", **more):
    return HotReport(
        configuration=HotConfiguration(
            flavor="valkey",
            version=version,
            redis_version="7.2.4",
            is_append_only=True,
            last_append="ok",
            fsync="always",
            eviction_policy="noeviction",
        ),
        memory_used_bytes=used,
        memory_max_bytes=GIB,
        time_ms=NOW_MS + skew_ms,
        **more,
    )


def findings(*nodes):
    return {
        finding.check: (finding.ok, finding.detail)
        for finding in hot_store_findings(nodes, SETTINGS, NOW_MS)
    }


def test_only_server_is_not_named():
    of_one = findings(HotNode(address="", report=report(skew_ms=3)))

    assert "store cluster" not in of_one
    assert of_one["clock"] == (True, "3 ms from the store's")
    assert of_one["memory"] == (True, "0 of 1024 MiB")


def test_fullest_and_furthest_server_is_named():
    told = findings(
        HotNode(address="a:1", report=report(used=GIB // 10 * 9)),
        HotNode(address="b:1", report=report(skew_ms=-5_000)),
    )

    assert told["memory"] == (None, "921 of 1024 MiB at a:1")
    assert told["clock"] == (False, "5000 ms from the store's at b:1")


@pytest.mark.parametrize(
    ("replica", "ok", "detail"),
    [
        (report(), True, "primaries: 1, replicas: 1"),
        (None, False, "primaries: 1, replicas: 1; no answer from b:1; no replica in sync for a:1"),
        (report(is_linked=False), None, "primaries: 1, replicas: 1; no replica in sync for a:1"),
    ],
)
def test_primary_without_replica_in_sync_is_named(replica, ok, detail):
    told = findings(
        HotNode(address="a:1", report=report()),
        HotNode(address="b:1", primary="a:1", report=replica),
    )

    assert told["store cluster"] == (ok, detail)


def test_many_servers_that_differ_are_counted():
    nodes = [HotNode(address=f"a:{nth}", report=report()) for nth in range(6)]
    others = [HotNode(address=f"b:{nth}", report=report(version="8.1.0")) for nth in range(5)]

    assert findings(*nodes, *others)["store version"] == (
        True,
        "valkey 9.0.0; valkey 8.1.0 at b:0, b:1, b:2 and 2 more",
    )
