"""What work costs: processor time of the API, the store and Postgres, and what the store did for it."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tests.bench.ratios import Unmeasurable
from tests.bench.servers import House, Served

MICRO = 1e6
_NANO = 1e9


class Spent(NamedTuple):
    """Processor time in seconds, the scripts that the store ran and how long it was in them."""

    api_s: float
    store_s: float
    postgres_s: float
    own_s: float
    scripts: float
    scripts_s: float

    def __sub__(self, before: "Spent") -> "Spent":
        return Spent(*(now - then for now, then in zip(self, before, strict=True)))

    @property
    def all_s(self) -> float:
        """Of the service's processes together."""
        return self.api_s + self.store_s + self.postgres_s


class Meter:
    """Reads what the processes of a house have used. `served`: of the API processes, those that are looked at."""

    def __init__(self, house: House, *served: Served) -> None:
        self._house = house
        self._api = [one.pid for one in served or (house.api,)]
        told: Any = house.store.info("server")
        self._store = int(told["process_id"])
        self._postmaster = int((house.data / "postgres" / "postmaster.pid").read_text().split()[0])

    def read(self, own_s: float | None = None) -> Spent:
        """All of it until now. `own_s`: this process's, where the reading itself must not count."""
        told: Any = self._house.store.info("commandstats")
        scripts = told.get("cmdstat_evalsha", {"calls": 0, "usec": 0})
        return Spent(
            sum(map(seconds_of, self._api)),
            seconds_of(self._store),
            sum(map(seconds_of, (self._postmaster, *children_of(self._postmaster)))),
            time.process_time() if own_s is None else own_s,
            scripts["calls"],
            scripts["usec"] / MICRO,
        )

    def since(self, before: Spent) -> Spent:
        """What was used since then."""
        return self.read(time.process_time()) - before

    def spent(self, work: Callable[[], object]) -> Spent:
        """What this costs."""
        before = self.read()
        work()
        return self.since(before)

    def each(self, work: Callable[[], int], rounds: int = 3) -> Spent:
        """What one of what `work` says it has done costs; the median of some rounds."""
        return self.in_turn({"": work}, rounds)[""]

    def in_turn(self, works: Mapping[str, Callable[[], int]], rounds: int = 3) -> dict[str, Spent]:
        """The same of several, one after another in each round."""
        found: dict[str, list[Spent]] = {label: [] for label in works}
        for _ in range(rounds):
            for label, work in works.items():
                before = self.read()
                count = work()
                spent = self.since(before)
                if not count:
                    raise Unmeasurable(f"there was nothing to do: {label}")
                found[label].append(Spent(*(part / count for part in spent)))
        return {
            label: Spent(*map(median, zip(*some, strict=True))) for label, some in found.items()
        }


def children_of(pid: int) -> list[int]:
    """The processes that a process has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = path.read_text().rpartition(")")[2].split()[1]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(parent) == pid:
            found.append(int(path.parent.name))
    return found


def seconds_of(pid: int) -> float:
    """Processor time of a process's threads that still run."""
    total = 0
    for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            total += int(thread.read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total / _NANO
