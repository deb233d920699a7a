"""Row of small replays: the time from the call to the first record in the target, without Spark."""

import asyncio
from collections.abc import Iterator
from time import monotonic, sleep

from storage.bootstrap import open_storage
from storage.domain.presence import ProcessRole
from tests.bench.plan import REPLAY_SMALL, Plan
from tests.bench.ratios import Measured, Round, Unmeasurable
from tests.bench.rows_archive import running_worker
from tests.bench.servers import House
from tests.bench.wire import call

SOURCE, TARGET = "bench-small", "bench-small-again"
RECORDS, CALLS_RECORDS = 1_000, 500
FIRST_RECORD_MS = 2_000.0
STARTED_S_MAX = 60.0
POLL_S = 0.005


def measure(house: House, plan: Plan) -> list[Measured]:
    """Replay hot records by a worker that has not started Spark; the first round loads modules."""
    port = house.api.port
    call(port, "PUT", f"/v1/streams/{SOURCE}", {"archive": False})
    records = [{"data": "x" * 256, "key": f"key-{nth}"} for nth in range(CALLS_RECORDS)]
    for _ in range(RECORDS // CALLS_RECORDS):
        call(port, "POST", f"/v1/streams/{SOURCE}/records", {"records": records})
    with running_worker(house):
        asyncio.run(_wait_until_it_runs(house))
        rounds = [Round(waited_ms, FIRST_RECORD_MS) for waited_ms in _rounds(port, plan.rounds)]
    call(port, "DELETE", f"/v1/streams/{SOURCE}")
    note = f"of a worker's first replay {rounds[0].value:.0f} ms; workers poll once a second"
    return [Measured(row=REPLAY_SMALL, rounds=rounds, notes=[note])]


async def _wait_until_it_runs(house: House) -> None:
    """Wait until the worker is registered: its start is not part of the measurement."""
    give_up_at = monotonic() + STARTED_S_MAX
    async with open_storage(house.storage) as storage:
        while monotonic() < give_up_at:
            if ProcessRole.WORKER in {one.role for one in await storage.presence.processes()}:
                return
            await asyncio.sleep(POLL_S)
    raise Unmeasurable("the worker did not start")


def _rounds(port: int, count: int) -> Iterator[float]:
    for nth in range(count):
        call(port, "PUT", f"/v1/streams/{TARGET}-{nth}", {"archive": False})
        begun = monotonic()
        request = {"stream": SOURCE, "target": {"stream": f"{TARGET}-{nth}"}}
        replay = call(port, "POST", "/v1/replays", request)["id"]
        _wait_for_record(port, f"/v1/streams/{TARGET}-{nth}/shards/0/records?limit=1")
        yield (monotonic() - begun) * 1_000
        while call(port, "GET", f"/v1/replays/{replay}")["state"] != "done":
            sleep(POLL_S)
        call(port, "DELETE", f"/v1/streams/{TARGET}-{nth}")


def _wait_for_record(port: int, path: str) -> None:
    give_up_at = monotonic() + STARTED_S_MAX
    while not call(port, "GET", path)["records"]:
        if monotonic() > give_up_at:
            raise Unmeasurable("no record was replayed")
        sleep(POLL_S)
