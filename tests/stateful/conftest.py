"""Open storage for a state machine, on a loop that runs its steps, with a manual clock."""

import asyncio
import secrets
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any, TypeVar

import pytest
import redis.backoff
from hypothesis import settings

from storage.bootstrap import Storage, Stores, open_storage
from storage.concurrency.periodic import pause_seconds
from storage.domain.clock import ManualClock
from storage.domain.limits import Limits
from storage.log.store_epoch import StoreEpoch
from storage.settings import StorageSettings
from tests.simulator.database import Postgres, SimulatedDatabase, SimulatedListener
from tests.simulator.hot_store.connection import SimulatedNodes
from tests.simulator.hot_store.server import SimulatedServer
from tests.simulator.virtual_loop import VirtualLoop

T = TypeVar("T")

ON_BOTH_STORES = pytest.mark.parametrize("bench", ["server", "simulated"], indirect=True)
"""Run a machine on a server and on the simulated one, which must run the scripts as a server does."""

_names = count(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run on the simulated store once: it is the same whichever server the others run on."""
    items[:] = [item for item in items if not _is_repeated(item)]


def _is_repeated(item: pytest.Item) -> bool:
    params = (
        item.callspec.params
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
        else {}
    )
    return params.get("bench") == "simulated" and params.get("redis_url") == "cluster"


@dataclass
class Bench:
    """The engines, and how a synchronous step runs them; `examples` limits their number.

    A node of a cluster and the simulated store get a fifth: there it matters only that every script keeps to one slot,
    and that it runs as on a server.
    """

    storage: Storage
    clock: ManualClock
    run: Callable[[Coroutine[Any, Any, T]], T]
    examples: settings

    def reconnect_to_another_server(self) -> None:
        """Reconnect as a process does when the store returns as another server process."""
        epoch = self.storage.streams._provisioner._epoch
        assert isinstance(epoch, StoreEpoch)
        epoch._run_id = ""
        self.run(epoch.check())

    @property
    def half(self) -> settings:
        """Settings for machines whose steps are slow: a reshard, a group's rebalance."""
        return settings(self.examples, max_examples=max(5, self.examples.max_examples // 2))

    def new_name(self, kind: str) -> str:
        """A name that no earlier example had."""
        return f"{kind}-{next(_names)}"


@pytest.fixture
def examples(request: pytest.FixtureRequest) -> settings:
    """Fewer than usual, because each example is dozens of steps."""
    most = settings.default.max_examples * 3 // 5 if settings.default else 0
    params = request.node.callspec.params
    is_other = params["redis_url"] == "cluster" or params.get("bench") == "simulated"
    return settings(max_examples=max(5, most // 5) if is_other else most)


@contextmanager
def _simulated_stores(database_url: str) -> Iterator[Stores]:
    chance = Random(0)
    nodes = SimulatedNodes(SimulatedServer(chance))
    with closing(Postgres(database_url)) as postgres:
        database = SimulatedDatabase(postgres, chance, lambda: False)
        yield Stores(
            database=lambda _: nullcontext(database),
            listener=lambda _: SimulatedListener(postgres, chance),
            nodes=lambda _: nodes,
        )
        postgres.run("DROP SCHEMA simulated CASCADE")


@pytest.fixture
def _seeded_choices_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse choices that no seed repeats: an example that is run again must draw the same.

    The tests seed `random` for each example. Pauses and retries in the background, which depend on the time, draw from elsewhere.
    """

    def refuse(_: Any) -> Any:
        raise AssertionError("Choose by `random`; `secrets` is for what must not be guessed")

    monkeypatch.setattr(secrets, "randbelow", refuse)
    monkeypatch.setattr(secrets, "choice", refuse)
    elsewhere = Random(0)
    monkeypatch.setattr(pause_seconds, "__defaults__", (elsewhere.random,))
    monkeypatch.setattr(redis.backoff, "random", elsewhere)


@pytest.fixture
def bench(
    request: pytest.FixtureRequest,
    redis_url: str,
    database_url: str,
    examples: settings,
    _seeded_choices_only: None,
) -> Iterator[Bench]:
    is_simulated = getattr(request, "param", "") == "simulated"
    simulated_or_real = _simulated_stores(database_url) if is_simulated else nullcontext(Stores())
    store_settings = StorageSettings(redis_url=redis_url, database_url=database_url)
    clock = ManualClock()
    limits = Limits(
        reservation_offsets_min=20, reservation_ms=0
    )  # small, so that examples reach their ceilings
    with (
        simulated_or_real as stores,
        asyncio.Runner(loop_factory=VirtualLoop if is_simulated else None) as runner,
    ):
        opened = open_storage(store_settings, clock=clock, limits=limits, stores=stores)
        storage = runner.run(opened.__aenter__())
        try:
            yield Bench(storage, clock, runner.run, examples)
        finally:
            runner.run(opened.__aexit__(None, None, None))
