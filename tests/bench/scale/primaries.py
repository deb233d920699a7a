"""A Redis Cluster of one, two and three primaries: cost per call, and what this machine did."""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from statistics import median

from tests.bench.scale.curves import Curve, Growing
from tests.bench.scale.meters import MICRO, seconds_of
from tests.bench.scale.processes import CONNECTIONS, QUEUES, SECONDS, Loads, Work
from tests.bench.scale.sizes import Sizes
from tests.bench.servers import House
from tests.clusters import Masters, running_masters
from tests.databases import fresh_database

ROUNDS = 3
API, STORE = "primaries-api", "primaries-store"
"""Names of the curves that `tests.bench.scale.capacity` reads."""


def measure(house: House, sizes: Sizes) -> Iterator[Curve]:
    """Curves over the number of primaries."""
    api, store, rates = Growing(), Growing(), Growing()
    for size in sizes.primaries:
        with on_cluster(house, size) as (served, cluster):
            for label, (work, fill) in Loads(served).kinds.items():
                rounds = [_round(served, cluster, work, fill) for _ in range(ROUNDS)]
                costs = map(median, zip(*rounds, strict=True))
                for lines, cost in zip((api, store, rates), costs, strict=True):
                    lines.add(size, **{label: cost})
    made = (
        f"wrk for {SECONDS} s with {CONNECTIONS} connections to one API process; one kind of call at a time, to "
        f"{QUEUES} queues or one stream of 4 shards, on a cluster without replicas; the median of {ROUNDS} rounds."
    )
    yield api.costs(
        API, "Primaries: the API", "µs of the API's processor a call", made, size="primaries"
    )
    yield store.costs(STORE, "Primaries: the store", "µs of all primaries' processors a call", made, size="primaries")  # fmt: skip
    yield rates.costs(
        "primaries-rates",
        "Primaries: what this machine did",
        "calls a second",
        f"{made} Client, API process, primaries and Postgres share the cores of this machine.",
        size="primaries",
    )


def _round(
    served: House, cluster: Masters, work: Work, fill: Callable[[], None]
) -> tuple[float, float, float]:
    """Return the cost of a call for the API and for the primaries in µs, and calls per second."""
    fill()
    before = _spent(served, cluster)
    load = work(served.api.port, CONNECTIONS)
    api_s, store_s = (now - then for now, then in zip(_spent(served, cluster), before, strict=True))
    return api_s * MICRO / load.calls, store_s * MICRO / load.calls, load.rate


@contextmanager
def on_cluster(house: House, primaries: int) -> Generator[tuple[House, Masters]]:
    """Run a cluster of so many primaries, and an API process on it."""
    folder = house.data / f"cluster-{primaries}"
    folder.mkdir()
    with (
        running_masters(folder, primaries, has_replicas=False) as cluster,
        fresh_database(house.database_url, "template1") as database_url,
        house.on_stores(cluster.url, database_url) as served,
    ):
        yield served, cluster


def _spent(served: House, cluster: Masters) -> tuple[float, float]:
    """Processor time so far of the API process, and of all primaries."""
    return seconds_of(served.api.pid), sum(map(seconds_of, cluster.pids()))
