"""Open storage for a state machine, on a loop that runs its steps, with a manual clock."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar

import pytest
from hypothesis import settings

from storage.bootstrap import Storage, open_storage
from storage.domain.clock import ManualClock
from storage.domain.limits import Limits
from storage.settings import StorageSettings

T = TypeVar("T")

_names = count(1)


@dataclass
class Bench:
    """The engines, and how a synchronous step runs them; `examples` limits their number.

    A node of a cluster gets a fifth: there it matters only that every script keeps to one slot.
    """

    storage: Storage
    clock: ManualClock
    run: Callable[[Coroutine[Any, Any, T]], T]
    examples: settings

    def reconnect_to_another_server(self) -> None:
        """Reconnect as a process does when the store returns as another server process."""
        epoch = self.storage.streams._provisioner._epoch
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
    on_cluster = request.node.callspec.params["redis_url"] == "cluster"
    return settings(max_examples=max(5, most // 5) if on_cluster else most)


@pytest.fixture
def bench(redis_url: str, database_url: str, examples: settings) -> Iterator[Bench]:
    stores = StorageSettings(redis_url=redis_url, database_url=database_url)
    clock = ManualClock()
    limits = Limits(reservation_offsets_min=20)  # small, so that examples reach their ceilings
    with asyncio.Runner() as runner:
        opened = open_storage(stores, clock=clock, limits=limits)
        storage = runner.run(opened.__aenter__())
        try:
            yield Bench(storage, clock, runner.run, examples)
        finally:
            runner.run(opened.__aexit__(None, None, None))
