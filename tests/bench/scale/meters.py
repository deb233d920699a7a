"""Cost of work: processor time of API, store and Postgres, and work of the store."""

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
    """Processor time in seconds, number of scripts, and their time."""

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
        """Processor time of all processes of the service."""
        return self.api_s + self.store_s + self.postgres_s


class Meter:
    """Read the usage of a deployment's processes; `served`: only these API processes."""

    def __init__(self, house: House, *served: Served) -> None:
        self._house = house
        self._api = [one.pid for one in served or (house.api,)]
        info: Any = house.store.info("server")
        self._store = int(info["process_id"])
        self._postmaster = int((house.data / "postgres" / "postmaster.pid").read_text().split()[0])

    def read(self, own_s: float | None = None) -> Spent:
        """Usage so far; `own_s`: this process's, without the reading itself."""
        info: Any = self._house.store.info("commandstats")
        scripts = info.get("cmdstat_evalsha", {"calls": 0, "usec": 0})
        return Spent(
            sum(map(seconds_of, self._api)),
            seconds_of(self._store),
            sum(map(seconds_of, (self._postmaster, *children_of(self._postmaster)))),
            time.process_time() if own_s is None else own_s,
            scripts["calls"],
            scripts["usec"] / MICRO,
        )

    def since(self, before: Spent) -> Spent:
        """Usage since then."""
        return self.read(time.process_time()) - before

    def spent(self, work: Callable[[], object]) -> Spent:
        """The cost of the work."""
        before = self.read()
        work()
        return self.since(before)

    def each(self, work: Callable[[], int], rounds: int = 3) -> Spent:
        """The median cost of one unit of work, over some rounds."""
        return self.in_turn({"": work}, rounds)[""]

    def in_turn(self, works: Mapping[str, Callable[[], int]], rounds: int = 3) -> dict[str, Spent]:
        """The median costs of several kinds of work, in turn in each round."""
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
    """The child processes of a process."""
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
    """Processor time of a process's running threads."""
    total = 0
    for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            total += int(thread.read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return total / _NANO
