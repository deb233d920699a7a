"""Rows against R: records through the API, and entries written by redis-benchmark."""

from collections.abc import Collection
from itertools import count

from tests.bench import payloads
from tests.bench.load import wrk
from tests.bench.plan import COMMIT_GROUPS, PRODUCE_1, PRODUCE_16, READ_GROUPS, READ_HOT, Plan
from tests.bench.ratios import Measured, Row
from tests.bench.rounds import Contestant, interleave
from tests.bench.servers import House
from tests.bench.wire import JSON, MSGPACK, call, post_all

READ_CALLS = 200  # different reads, in turn
GROUPS = 100


def measure(house: House, plan: Plan, wanted: Collection[Row]) -> list[Measured]:
    """Produce and read, against R."""
    records = Records(house, plan)
    contestants = [
        Contestant(PRODUCE_1, lambda: records.produce(1)),
        Contestant(PRODUCE_16, lambda: records.produce(16)),
        Contestant(READ_HOT, records.read),
        Contestant(READ_GROUPS, records.read_in_groups),
        Contestant(COMMIT_GROUPS, records.commit_in_groups),
    ]
    chosen = [one for one in contestants if one.row in wanted]
    if not {READ_HOT, READ_GROUPS, COMMIT_GROUPS}.isdisjoint(wanted):
        records.fill()
    if not {READ_GROUPS, COMMIT_GROUPS}.isdisjoint(wanted):
        records.make_groups()
    return interleave(plan.rounds, records.reference, chosen)


class Records:
    """Each produce uses a new stream, deleted afterwards, so that all rounds start alike."""

    READ_PATH = "/v1/streams/bench-read"

    def __init__(self, house: House, plan: Plan) -> None:
        self._house = house
        self._seconds = plan.seconds
        self._file = house.file("columns", payloads.columns())
        self._commit = house.file("commit", b'{"offsets":[{"shard":0,"offset":100}]}')
        self._reads = ""
        self._numbers = count()

    def reference(self) -> float:
        """R, in entries per second."""
        return self._house.reference(self._seconds)

    def produce(self, shards: int) -> float:
        """Records per second."""
        port, path = self._house.api.port, f"/v1/streams/bench-{next(self._numbers)}"
        call(port, "PUT", path, {"shards": shards})
        words = ("POST", MSGPACK, MSGPACK, self._file, f"{path}/columns", "1", "0")
        load = wrk(port, "fixed.lua", *words, seconds=self._seconds)
        call(port, "DELETE", path)
        return load.rate * payloads.RECORDS

    def fill(self) -> None:
        """Write the records to be read."""
        port = self._house.api.port
        call(port, "PUT", self.READ_PATH, {"shards": 1})
        batch = (f"{self.READ_PATH}/records", payloads.records(), MSGPACK)
        post_all(port, [batch] * (READ_CALLS + 1))

    def read(self) -> float:
        """Records per second."""
        path = f"{self.READ_PATH}/shards/0/records?limit={payloads.RECORDS}&offset=%d"
        words = ("GET", JSON, MSGPACK, "-", path, str(READ_CALLS), str(payloads.RECORDS))
        load = wrk(self._house.api.port, "fixed.lua", *words, seconds=self._seconds)
        return load.rate * payloads.RECORDS

    def make_groups(self) -> None:
        """Groups that read the written records, and others that only store offsets."""
        for number in range(GROUPS):
            for kind in ("ordered", "simple"):
                spec = {"stream": self.READ_PATH.rpartition("/")[2], "kind": kind}
                call(self._house.api.port, "PUT", f"/v1/groups/{kind}-{number}", spec)
        paths = "".join(f"{self._member_path(number)}\n" for number in range(GROUPS))
        self._reads = self._house.file("reads", paths.encode())

    def _member_path(self, number: int) -> str:
        """Return the path by which an instance of a group's member reads again."""
        path = f"/v1/groups/ordered-{number}/records?member=bench&limit={payloads.RECORDS}"
        return f"{path}&token={call(self._house.api.port, 'GET', path)['token']}"

    def read_in_groups(self) -> float:
        """Records per second; each read is also a heartbeat."""
        load = wrk(self._house.api.port, "paths.lua", MSGPACK, self._reads, seconds=self._seconds)
        return load.rate * payloads.RECORDS

    def commit_in_groups(self) -> float:
        """Commits per second."""
        path = "/v1/groups/simple-%d/commit"
        words = ("POST", JSON, JSON, self._commit, path, str(GROUPS), "1")
        load = wrk(self._house.api.port, "fixed.lua", *words, seconds=self._seconds)
        return load.rate
