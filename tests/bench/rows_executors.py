"""Rows of a Spark cluster: archive and replay with two executors, against the same with one.

The cluster is a master and two workers of this machine, and each executor has one core. Stores and driver need processor time
too, so two executors can be twice as fast only on a machine with cores for all of them: `EXECUTORS_CORES_MIN`. The processor time of
executors for a record does not depend on that, and is in the notes.
"""

from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.bench.plan import CORES, EXECUTORS_ARCHIVE, EXECUTORS_CORES_MIN, EXECUTORS_REPLAY, Plan
from tests.bench.ratios import Measured, Round, Row, Unmeasurable
from tests.bench.rows_archive import (
    TICKS,
    archive_all,
    cpu_seconds,
    fill,
    let_go,
    replay_all,
    running_worker,
)
from tests.bench.servers import House
from tests.bench.wire import call
from tests.spark.cluster.standalone_cluster import (
    StandaloneCluster,
    conf_of_executors,
    standalone_cluster,
)

ROUNDS_MAX = 3  # each opens two sessions
SHARDS = 4
WARM_RECORDS = 120_000  # a replay of fewer would not use Spark
_MILLION = 1_000_000
SOURCE, FRESH, TARGET, WARM = (f"bench-executors-{name}" for name in ("old", "new", "to", "warm"))


@dataclass(frozen=True, slots=True)
class Run:
    """One job: records, seconds of the clock, processor seconds of executors and of the whole machine."""

    records: int
    seconds: float
    executors_s: float
    machine_s: float


Runs = Mapping[Row, Run]


def measure(house: House, plan: Plan, wanted: Collection[Row]) -> list[Measured]:
    """Archive and replay with one executor and with two, in turn."""
    with _cluster(house) as cluster:
        jobs = Jobs(house, cluster, plan.replayed)
        jobs.prepare()
        rounds = [(jobs.run(1), jobs.run(2)) for _ in range(min(plan.rounds, ROUNDS_MAX))]
    for name in (SOURCE, WARM):
        call(house.api.port, "DELETE", f"/v1/streams/{name}")
    return [
        compared(row, [(one[row], two[row]) for one, two in rounds])
        for row in (EXECUTORS_ARCHIVE, EXECUTORS_REPLAY)
        if row in wanted
    ]


class Jobs:
    """The jobs of a round, by a worker whose session has one executor or two."""

    def __init__(self, house: House, cluster: StandaloneCluster, records: int) -> None:
        self._house = house
        self._port = house.api.port
        self._cluster = cluster
        self._records = records

    def prepare(self) -> None:
        """Archive what is replayed."""
        fill(self._house, WARM, WARM_RECORDS, shards=SHARDS, archive=False)
        fill(self._house, SOURCE, self._records, shards=SHARDS, archive=True)
        with self._worker(executors=2):
            archive_all(self._port, SOURCE)
        let_go(self._house, SOURCE, self._records)

    def run(self, executors: int) -> Runs:
        """Run both jobs; the first replay loads the modules of tasks."""
        fill(self._house, FRESH, self._records, shards=SHARDS, archive=True)
        with self._worker(executors):
            self._replay(WARM)
            if (running := len(self._cluster.executors())) != executors:
                raise Unmeasurable(f"{running} executors run instead of {executors}")
            archived = self._timed(lambda: archive_all(self._port, FRESH))
            replayed = self._timed(lambda: self._replay(SOURCE))
        call(self._port, "DELETE", f"/v1/streams/{FRESH}")
        return {EXECUTORS_ARCHIVE: archived, EXECUTORS_REPLAY: replayed}

    def _replay(self, source: str) -> float:
        call(self._port, "PUT", f"/v1/streams/{TARGET}", {"shards": SHARDS, "archive": False})
        replay, seconds = replay_all(self._port, {"stream": source, "target": {"stream": TARGET}})
        call(self._port, "DELETE", f"/v1/streams/{TARGET}")
        expected = WARM_RECORDS if source == WARM else self._records
        if (sent := replay["progress"]["sent"]) != expected:
            raise Unmeasurable(f"{sent} records of {expected} are in the target")
        return seconds

    def _timed(self, job: Callable[[], float]) -> Run:
        executors = self._cluster.executors()
        before_s, machine_s = sum(map(cpu_seconds, executors)), _machine_seconds()
        seconds = job()
        used_s = sum(map(cpu_seconds, executors)) - before_s
        return Run(self._records, seconds, used_s, _machine_seconds() - machine_s)

    @contextmanager
    def _worker(self, executors: int) -> Generator[None]:
        self._cluster.restore()
        conf = self._house.data / "spark.conf"
        chosen = conf_of_executors() | {"spark.cores.max": str(executors)}
        conf.write_text("".join(f"{name} {value}\n" for name, value in chosen.items()))
        with running_worker(
            self._house,
            spark_master=self._cluster.master_url,
            spark_conf_file=conf,
            archive_shared=True,
        ):
            yield


@contextmanager
def _cluster(house: House) -> Generator[StandaloneCluster]:
    folder = house.data / "cluster"
    folder.mkdir()
    with standalone_cluster(folder) as cluster:
        yield cluster


def _machine_seconds() -> float:
    """Return the processor time that this machine has spent, of all cores together."""
    user, nice, system = Path("/proc/stat").read_text().split()[1:4]
    return (int(user) + int(nice) + int(system)) / TICKS


def compared(row: Row, rounds: list[tuple[Run, Run]]) -> Measured:
    """Compare by the clock; notes have the processor time, which is the same with more cores."""
    ones, twos = ([pair[nth] for pair in rounds] for nth in range(2))
    most = 2 * _executors_s(ones) / _executors_s(twos)
    notes = [
        f"with one executor {_note(ones)}",
        f"with two {_note(twos)}",
        f"by this time alone two would be {most:.2f} times as fast, with a core for every process",
    ]
    if row.bar is None:
        notes.append(
            f"the target of 1.7 is for {EXECUTORS_CORES_MIN} cores or more; here are {CORES}"
        )
    ratios = [Round(two.records / two.seconds, one.records / one.seconds) for one, two in rounds]
    return Measured(row=row, rounds=ratios, notes=notes)


def _note(runs: list[Run]) -> str:
    machine_s = median(run.machine_s / run.records for run in runs) * _MILLION
    cores = median(run.machine_s / run.seconds for run in runs)
    return (
        f"{_executors_s(runs):.1f} s of processor time of executors for a million records,"
        f" {machine_s:.1f} s of the machine, which used {cores:.1f} cores"
    )


def _executors_s(runs: list[Run]) -> float:
    """Return the processor time of executors for a million records."""
    return median(run.executors_s / run.records for run in runs) * _MILLION
