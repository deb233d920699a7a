"""Fault injection: a schedule derived from a seed, in which every fault is undone."""

import asyncio
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from random import Random

import msgspec

from tests.chaos.history import History, Kind, Operation, Outcome
from tests.chaos.postgres_pair import PostgresPair
from tests.chaos.proxy import Fault, Proxy
from tests.chaos.replica_set import REPLICA_SET_FAULTS, ReplicaSetFaults
from tests.chaos.site import Site, signalled
from tests.chaos.tools import failing_fsync

LASTS_S = (0.5, 4.0)
CALM_S = (0.5, 3.0)
TOGETHER = 0.3
"""Probability that the next fault overlaps this one."""
ROLL_S = 1.5  # between the processes of a rolling restart
RECOVERING_S = 0.05  # maximum delay before a restarted store is killed again

JUMP_S = (3.0, 15.0)  # forwards, below every deduplication window
CLOCK_SETTLES_S = 1.5

LINKS = ("clients", "valkey", "postgres")
RESOURCES = {
    "kill_api": "api",
    "pause_api": "api",
    "roll_api": "api",
    "kill_background": "background",
    "pause_background": "background",
    "kill_worker": "worker",
    "pause_worker": "worker",
    "kill_valkey": "valkey",
    "kill_valkey_twice": "valkey",
    "disk_full": "valkey",
    "fsync_error": "valkey",
    "clock_jump": "valkey",
    "kill_postgres": "postgres",
    "postgres_failover": "postgres",
    **dict.fromkeys(REPLICA_SET_FAULTS, "replica set"),
    "part_postgres": "postgres link",
    "recreate_stream": "recreated stream",
    "pause_queue": "paused queue",
    "pause_group": "paused group",
    "recreate_target": "recreated target",
    "fill_target": "full target",
    **{
        f"{fault.value}_{link}": f"{link} link"
        for link in LINKS
        for fault in Fault
        if fault is not Fault.NONE
    },
}
"""Each fault with its resource; faults of one resource do not overlap."""
SINGLE_STORE_FAULTS = tuple(
    name for name, resource in RESOURCES.items() if resource in ("valkey", "valkey link")
)
SINGLE_POSTGRES_FAULTS = (
    "kill_postgres",
    *(
        name
        for name, resource in RESOURCES.items()
        if name.endswith("_postgres") and resource == "postgres link"
    ),
)
OF_A_STANDBY = "postgres_failover"
"""The fault of a Postgres with a synchronous standby."""
OF_THE_WORKER = ("kill_worker", "pause_worker")
OF_THE_OPERATOR = (
    "recreate_stream",
    "pause_queue",
    "pause_group",
    "recreate_target",
    "fill_target",
)
"""Faults that are requests, which the workload carries out; each takes the seconds that it should last."""

Requests = Mapping[str, Callable[[float], Awaitable[None]]]


class Planned(msgspec.Struct, frozen=True):
    """A fault: start and duration in seconds; `luck` selects its victim."""

    name: str
    at: float
    lasts: float
    luck: float

    @property
    def over(self) -> float:
        return self.at + self.lasts


def schedule(seed: int, seconds: float, without: Collection[str] = frozenset()) -> list[Planned]:
    """Schedule faults for this duration: every kind once in random order, then again."""
    chance = Random(seed)
    planned: list[Planned] = []
    bag: list[str] = []
    at = chance.uniform(*CALM_S)
    while True:
        if not bag:
            bag = sorted(RESOURCES.keys() - without)
            chance.shuffle(bag)
        fault = Planned(bag.pop(), at, chance.uniform(*LASTS_S), chance.random())
        at = _begin(fault, planned)
        fault = msgspec.structs.replace(fault, at=at)
        if fault.over > seconds:
            return planned
        planned.append(fault)
        over = max(one.over for one in planned)
        if chance.random() < TOGETHER:
            at += chance.uniform(0, fault.lasts)
        else:
            at = over + chance.uniform(*CALM_S)


def _begin(fault: Planned, planned: list[Planned]) -> float:
    """The earliest start: not before its resource has recovered."""
    resource = RESOURCES[fault.name]
    return max(
        (fault.at, *(one.over for one in planned if RESOURCES[one.name] == resource)),
    )


class Nemesis:
    """Carry out a schedule."""

    def __init__(
        self,
        site: Site,
        history: History,
        requests: Requests,
        replica_set: ReplicaSetFaults | None = None,
        postgres: PostgresPair | None = None,
    ) -> None:
        self.done: Counter[str] = Counter()
        self.told: list[str] = []
        self._site = site
        self._history = history
        self._requests = requests
        self._replica_set = replica_set.named() if replica_set else {}
        self._postgres = postgres
        self._held = {resource: asyncio.Lock() for resource in RESOURCES.values()}

    async def run(self, planned: list[Planned]) -> None:
        """Inject every fault at its time; return when the last is undone."""
        began = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as group:
            for fault in planned:
                group.create_task(self._carry_out(fault, began))

    async def _carry_out(self, fault: Planned, began: float) -> None:
        await asyncio.sleep(max(0.0, began + fault.at - asyncio.get_running_loop().time()))
        async with self._held[RESOURCES[fault.name]]:  # a store may need longer than planned
            from_s = self._history.now()
            await self.put(fault)
        self.done[fault.name] += 1
        self.told.append(f"{from_s:8.2f} to {self._history.now():8.2f} s  {fault.name}")

    async def put(self, fault: Planned) -> None:
        """Inject a fault, and undo it."""
        breaks: dict[str, Callable[[Planned], Awaitable[None]]] = {
            "roll_api": self._roll,
            "disk_full": self._fill_disk,
            "fsync_error": self._fail_fsync,
            "clock_jump": self._move_clock,
            "kill_valkey": self._kill_valkey,
            "kill_valkey_twice": self._kill_valkey_in_recovery,
            "kill_postgres": self._kill_postgres,
        }
        name, _, of = fault.name.rpartition("_")
        if fault.name in OF_THE_OPERATOR:
            await self._requests[fault.name](fault.lasts)
        elif fault.name in self._replica_set:
            await self._replica_set[fault.name](fault.lasts, fault.luck)
        elif fault.name in breaks:
            await breaks[fault.name](fault)
        elif fault.name == OF_A_STANDBY:
            assert self._postgres is not None
            await self._postgres.fail_over(self._site.url, fault.lasts, fault.luck)
        elif name == "kill":
            await self._kill(of, fault)
        elif name == "pause":
            await self._pause(of, fault)
        else:
            await _trouble(self._site.proxies[of], Fault(name), fault.lasts)

    async def _kill(self, program: str, fault: Planned) -> None:
        """Kill a process; its supervisor restarts it."""
        if processes := self._site.processes(program):
            signalled(_chosen(processes, fault), signal.SIGKILL)
        await asyncio.sleep(fault.lasts)

    async def _pause(self, program: str, fault: Planned) -> None:
        if processes := self._site.processes(program):
            pid = _chosen(processes, fault)
            signalled(pid, signal.SIGSTOP)
            try:
                await asyncio.sleep(fault.lasts)
            finally:
                signalled(pid, signal.SIGCONT)

    async def _roll(self, fault: Planned) -> None:
        for pid in self._site.processes("api"):
            signalled(pid, signal.SIGTERM)
            await asyncio.sleep(ROLL_S)

    async def _kill_valkey(self, fault: Planned) -> None:
        self._site.valkey.kill()
        await asyncio.sleep(fault.lasts)
        await self._site.valkey.start()

    async def _kill_valkey_in_recovery(self, fault: Planned) -> None:
        self._site.valkey.kill()
        await self._site.valkey.begin()
        await asyncio.sleep(fault.luck * RECOVERING_S)
        await self._kill_valkey(fault)

    async def _fill_disk(self, fault: Planned) -> None:
        """Fill the disk; the store exits, and is restarted with free space."""
        disk = self._site.disk
        assert disk is not None
        disk.fill()
        try:
            await asyncio.sleep(fault.lasts)
        finally:
            disk.empty()
        await self._site.valkey.revive()

    async def _fail_fsync(self, fault: Planned) -> None:
        strace = self._site.tools.strace
        assert strace is not None
        with failing_fsync(strace, self._site.valkey.pid):
            await asyncio.sleep(fault.lasts)
        await self._site.valkey.revive()

    async def _move_clock(self, fault: Planned) -> None:
        """Move the clock ahead and back; the store's time then waits for real time."""
        clock, history = self._site.clock, self._history
        assert clock is not None
        began, jump_s = history.now(), JUMP_S[0] + fault.luck * (JUMP_S[1] - JUMP_S[0])
        clock.jump(jump_s)
        try:
            await asyncio.sleep(fault.lasts)
        finally:
            clock.jump(0)
        history.add(
            Operation(
                client="nemesis",
                kind=Kind.CLOCK,
                log="",
                invoked=began,
                ended=history.now() + CLOCK_SETTLES_S,
                outcome=Outcome.OK,
            )
        )

    async def _kill_postgres(self, fault: Planned) -> None:
        self._site.postgres.kill()
        await asyncio.sleep(fault.lasts)
        await self._site.postgres.start()


async def _trouble(proxy: Proxy, fault: Fault, seconds: float) -> None:
    proxy.be(fault)
    try:
        await asyncio.sleep(seconds)
    finally:
        proxy.be(Fault.NONE)


def _chosen(pids: list[int], fault: Planned) -> int:
    return pids[int(fault.luck * len(pids))]
