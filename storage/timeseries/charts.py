"""Rows of charts: the slots of a window that were measured, and their values."""

from collections.abc import Mapping

from storage.concurrency.ttl_cache import TtlCache
from storage.domain import limits
from storage.domain.clock import Clock
from storage.domain.timeseries.rollup import Row, Tick, encode_row, read_chunks, rows_of
from storage.domain.timeseries.samples import FINEST, QUARTERS, Ring, S, Shape, ring_for
from storage.hot_store.time_series import LatestSample, TimeSeriesStore
from storage.timeseries.quarters import quarter_row
from storage.timeseries.totals import DEPLOYMENT, ticks_of

_NONE: Mapping[int, Tick] = {}


class ChartWindow:
    """The slots of a chart, and those before it that its first rates need.

    `unfinished`: the last slot is a quarter of an hour that is not over, of which these samples were taken.
    """

    def __init__(
        self, ring: Ring, window_ms: int, last: int, unfinished: Mapping[int, Tick] = _NONE
    ) -> None:
        length = max(1, min(window_ms, ring.reach_ms) // ring.step_ms)
        self.unfinished = unfinished
        self.ring = ring
        self.slots = range(last - length + 1, last + 1)
        self.first = self.slots.start - limits.SERIES_RATE_STEPS
        self.last = last

    @property
    def chunks(self) -> range:
        return self.ring.chunks(self.first, self.last)


class ChartReader:
    """Reader of the rings."""

    def __init__(self, hot: TimeSeriesStore, clock: Clock) -> None:
        self._hot = hot
        self._clock = clock
        self._ticks_cache: TtlCache[dict[int, Tick]] = TtlCache(limits.SERIES_CACHE_MS, clock)

    async def rows(
        self,
        shape: Shape[S],
        namespace: str,
        resource_id: str,
        window: ChartWindow,
        latest: LatestSample | None,
    ) -> list[Row | None]:
        """Return a resource's row for each slot of a window, as of its latest sample."""
        packed_chunks = await self._hot.chunks(namespace, resource_id, window.ring, window.chunks)
        chunks = read_chunks(packed_chunks, window.ring, shape)
        stood = None
        if latest is not None and latest.resource_id == resource_id:
            stood = encode_row(shape, shape.values(shape.made(latest.values, latest.rates)))
        rows = rows_of(chunks, window.ring, window.first, window.last, stood)
        changed_ms = 0 if latest is None else latest.changed_ms
        if window.unfinished and changed_ms >= (window.last - 1) * QUARTERS.step_ms:
            rows[-1] = await self._unfinished(shape, namespace, resource_id, window) or rows[-1]
        return rows

    async def _unfinished(
        self, shape: Shape[S], namespace: str, resource_id: str, window: ChartWindow
    ) -> Row | None:
        """Return the row of the quarter that is not over; None if nothing changed in it."""
        numbers = range(window.last - 1, window.last + 1)
        packed_chunks = await self._hot.chunks(namespace, resource_id, FINEST, numbers)
        chunks = read_chunks(packed_chunks, FINEST, shape)
        _, row = quarter_row(shape, chunks, window.last, window.unfinished)
        return row

    async def window(
        self, window_ms: int, now_ms: int | None
    ) -> tuple[ChartWindow, dict[int, Tick]]:
        """Return the slots of a chart that ends now, and which of them were measured.

        The last one may not be over. It is shown if it was measured until now.
        """
        ring = ring_for(window_ms)
        slot = ring.slot(self._clock.now_ms() if now_ms is None else now_ms)
        window = ChartWindow(ring, window_ms, slot)
        ticks = await self._ticks(ring, window.chunks)
        if slot in ticks:
            return window, ticks
        if ring is QUARTERS and (unfinished := await self._ticks(FINEST, range(slot, slot + 1))):
            last = unfinished[max(unfinished)]
            return (
                ChartWindow(ring, window_ms, slot, unfinished),
                ticks | {slot: Tick(last.at_ms)},
            )
        return ChartWindow(ring, window_ms, slot - 1), ticks

    async def _ticks(self, ring: Ring, numbers: range) -> dict[int, Tick]:
        async def read() -> dict[int, Tick]:
            return ticks_of(await self._hot.chunks("", DEPLOYMENT, ring, numbers), ring)

        return await self._ticks_cache.get((ring.name, numbers), read)
