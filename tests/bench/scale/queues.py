"""Ten thousand queues: memory of each, cost of calls, and the idle sweeper."""

from collections.abc import Iterator

import psycopg

from tests.bench import payloads
from tests.bench.scale.caller import Caller, get, handles_in, put, receive, send, settle
from tests.bench.scale.curves import Curve, Expected, Growing
from tests.bench.scale.maintenance import Round, idle_rounds, sweeper_curve
from tests.bench.scale.meters import MICRO, Meter
from tests.bench.scale.sizes import Sizes
from tests.bench.servers import House
from tests.bench.wire import call

PREFIX = "scale-queue"
PAGE = 100
LAST = 50  # of additional queues, these are created by calls
STRIDE = 7_919  # consecutive calls use distant queues
USED = 4  # one in this many has a message: the others do not exist in the store
_COPIES = """
    with copies as (
        insert into queues (log_id, namespace, name, spec, version, created_at_ms, changed_at_ms)
        select substr(md5(random()::text), 1, 16), namespace, %s || lpad(nth::text, 5, '0'), spec, version,
            created_at_ms, changed_at_ms
        from queues, generate_series(%s::int, %s::int) nth where name = %s
        returning log_id, namespace
    )
    insert into logs (log_id, namespace, ceiling, log_epoch, epoch_start) select log_id, namespace, 0, 0, 0 from copies
"""


def path_of(number: int) -> str:
    """The path of a queue."""
    return f"/v1/queues/{PREFIX}-{number:05}"


def measure(house: House, sizes: Sizes) -> Iterator[Curve]:
    """All curves over the number of queues, which are kept."""
    among = Among(house, sizes)
    for size in sizes.queues:
        among.grow(size)
    yield from among.curves()


class Among:
    """A growing number of queues."""

    def __init__(self, house: House, sizes: Sizes) -> None:
        self._house = house
        self._sizes = sizes
        self._meter = Meter(house)
        call(house.api.port, "PUT", path_of(0), {})
        self._count = 1
        self._used_bytes = house.used_memory()
        self._api_bytes = house.api.resident_bytes
        self._calls, self._lists, self._bytes = Growing(), Growing(), Growing()
        self._duties: list[tuple[int, dict[str, Round]]] = []

    def grow(self, size: int) -> None:
        """Grow to this number, and measure."""
        with Caller(self._house.api.port) as caller:
            made = self._make(caller, size)
            self._use(caller, size, made)
            self._list(caller, size)
        self._weigh(size)
        self._duties.append((size, idle_rounds(self._house, self._meter)))

    def _make(self, caller: Caller, size: int) -> float:
        """Create queues; the processor time of one, in µs."""
        last = min(LAST, size - self._count)
        _copy(self._house, range(self._count, size - last))
        new, more = range(self._count, size), range(size - last, size)
        spent = self._meter.spent(lambda: caller.request(put(path_of(one), {}) for one in more))
        caller.request(send(path_of(one), payloads.BODY) for one in new if not one % USED)
        self._count = size
        return spent.all_s * MICRO / len(more)

    def _use(self, caller: Caller, size: int, made: float) -> None:
        """Send to and receive from queues spread over all, one call at a time."""
        chosen = [one * STRIDE % size for one in range(self._sizes.calls)]
        sent = self._meter.each(
            lambda: caller.done([send(path_of(one), payloads.BODY) for one in chosen])
        )
        worked = self._meter.each(lambda: _work(caller, chosen))
        self._calls.add(
            size,
            create=made,
            send=sent.all_s * MICRO,
            receive_and_acknowledge=worked.all_s * MICRO,
            send_in_the_store=sent.store_s * MICRO,
        )

    def _list(self, caller: Caller, size: int) -> None:
        for label, asked in (
            ("first page", f"/v1/queues?limit={PAGE}"),
            ("page of a prefix", f"/v1/queues?limit={PAGE}&prefix={PREFIX}-0000"),
            ("page of the dashboard", "/ui/queues"),
            ("metrics", "/metrics"),
        ):
            spent = self._meter.each(lambda asked=asked: caller.done([get(asked)] * 16))  # type: ignore[misc]
            self._lists.add(size, **{label: spent.all_s * 1e3})

    def _weigh(self, size: int) -> None:
        self._house.wait_for_freeing()
        store = self._house.used_memory() - self._used_bytes
        api = self._house.api.resident_bytes - self._api_bytes
        self._bytes.add(size, store=store / size, API_process=max(1.0, api / size))

    def curves(self) -> Iterator[Curve]:
        """The results."""
        yield Curve(
            name="queues-calls",
            title="Calls among many queues",
            size="queues",
            unit="µs of processor a call",
            made=f"{self._sizes.calls} calls of each kind over 8 connections, spread over all queues; processor time of API, "
            "store and Postgres together, the median of three rounds.",
            series=self._calls.series(),
            log_costs=True,
        )
        yield Curve(
            name="queues-lists",
            title="Lists of many queues",
            size="queues",
            unit="ms of processor a call",
            made="16 calls over 8 connections; processor time of API, store and Postgres together.",
            expected=Expected.LOGARITHMIC,
            series=self._lists.series(),
            log_costs=True,
        )
        yield Curve(
            name="queues-memory",
            title="Memory of many queues",
            size="queues",
            unit="bytes a queue",
            made="What the store has allocated, and what the API process holds, beyond what both had with none, for each queue; "
            "one in four holds a message of 256 B.",
            series=self._bytes.series(),
            log_costs=True,
        )
        yield sweeper_curve("queues", self._duties)


def _copy(house: House, numbers: range) -> None:
    """Insert copies of the first queue's row, because creation takes ten milliseconds."""
    bounds = (path_of(0).rpartition("/")[2], numbers.start, numbers.stop - 1)
    with psycopg.connect(house.database_url) as connection:
        connection.execute(_COPIES, (f"{PREFIX}-", *bounds[1:], bounds[0]))


def _work(caller: Caller, chosen: list[int]) -> int:
    answers = caller.request([receive(path_of(one)) for one in chosen])
    settled = [
        settle(path_of(one), handles, action="ack")
        for one, answer in zip(chosen, answers, strict=True)
        if (handles := handles_in(answer))
    ]
    return len(chosen) + caller.done(settled)
