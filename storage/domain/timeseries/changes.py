"""State that the sampler keeps of each resource, so that it writes only changes.

A chunk of a longer ring begins with the first change in its time, and with the values before it. So a reader
finds a chunk wherever something changed; otherwise nothing did, and the last measured values held all the time.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from storage.domain import limits
from storage.domain.timeseries.rollup import (
    Row,
    SlotAccumulator,
    added,
    encode_row,
    initial_bucket,
    rate,
)
from storage.domain.timeseries.samples import FINEST, RINGS, Ring, Shape, Values

LONGER = RINGS[1:]


class Addition(NamedTuple):
    """Samples to append to a chunk of a ring.

    `begin` is written first where the chunk does not exist; empty: the chunk exists.
    """

    ring: Ring
    chunk: int
    begin: bytes
    samples: bytes


class SlotProgress(NamedTuple):
    """Current slot of a longer ring: the number of samples taken in it, and when the last was."""

    slot: int
    samples: int
    last_at_ms: int


class ResourceState:
    """State of one resource: its last sample, and the progress of each ring."""

    __slots__ = (
        "_begun",
        "_last",
        "_spans",
        "behind",
        "changed_ms",
        "rates",
        "resource_id",
        "seen_ms",
        "shape",
        "values",
    )

    def __init__(self, shape: Shape[Any], resource_id: str) -> None:
        self.shape = shape
        self.resource_id = resource_id
        self.values: Values | None = None
        self.rates: tuple[float | None, ...] = ()
        self.behind: tuple[tuple[int, ...], ...] = ()
        self.changed_ms = 0
        self.seen_ms = 0
        self._spans: list[SlotAccumulator | None] = [None] * len(RINGS)
        self._begun = [-1] * len(RINGS)  # the chunk that certainly exists
        self._last: list[Row | None] = [None] * len(RINGS)  # that chunk's last row, if it is known

    def record(
        self,
        values: Values,
        at_ms: int,
        longer: Sequence[SlotProgress],
        *,
        parts: int = 1,
        forced: bool = False,
    ) -> list[Addition]:
        """Record a sample of the resource and return the additions to write.

        `longer`: the current slots, which do not count this sample yet; `forced`: the last write may be missing.
        """
        before = self.values
        self.rates = self._rates(values, at_ms, parts)
        self.seen_ms = at_ms
        if values == before and not forced:
            return []
        additions = []
        for ring, progress in zip(LONGER, longer, strict=True):
            if self._begun[ring.nth] != ring.chunk(progress.slot):
                additions.append(self._begin(ring, ring.chunk(progress.slot)))
            self.changed(ring, progress, before)
        additions.append(self._added(FINEST, FINEST.slot(at_ms), encode_row(self.shape, values)))
        if values != before:
            self.values, self.changed_ms = values, at_ms
        return additions

    def changed(self, ring: Ring, progress: SlotProgress, before: Values | None) -> None:
        """Record that these values ended; they held up to the samples counted so far.

        `before` is None for a resource that did not exist.
        """
        span = self._spans[ring.nth]
        if span is None:
            span = self._spans[ring.nth] = SlotAccumulator(
                self.shape.columns, progress.samples if before is None else 0
            )
        if before is not None:
            span.stood(before, progress.samples, progress.last_at_ms)

    def close(self, ring: Ring, progress: SlotProgress) -> tuple[list[Addition], bool]:
        """Close a slot of a longer ring and return the additions to write.

        Also returns whether the next slot may differ although nothing changes in it.
        """
        values, span = self.values, self._spans[ring.nth]
        if values is None:
            return [], False
        self._spans[ring.nth] = None
        row = steady = encode_row(self.shape, values)
        if span is not None:
            span.stood(values, progress.samples, progress.last_at_ms)
            row = span.row(values, progress.last_at_ms)
        if row == self._last[ring.nth]:
            return [], row != steady
        return [self._added(ring, progress.slot, row)], row != steady

    def _rates(self, values: Values, at_ms: int, parts: int) -> tuple[float | None, ...]:
        before, ms = self.values, at_ms - self.seen_ms
        longest_ms = limits.SERIES_RATE_STEPS * parts * FINEST.step_ms
        if before is None or ms > longest_ms:
            return (None,) * len(self.shape.counts)
        if values == before and ms > 0:
            return self.shape.still
        return tuple(rate(before[nth] or 0, values[nth] or 0, ms) for nth in self.shape.counts)

    def _begin(self, ring: Ring, chunk: int) -> Addition:
        begin = initial_bucket(self._earlier(ring))
        self._begun[ring.nth] = chunk
        self._last[ring.nth] = None  # the chunk may exist, with rows of another process
        return Addition(ring, chunk, begin, b"")

    def _added(self, ring: Ring, slot: int, row: Row) -> Addition:
        chunk = ring.chunk(slot)
        nth = slot - chunk * ring.chunk_slots
        if self._begun[ring.nth] == chunk:
            addition = Addition(ring, chunk, b"", added(nth, row, self._last[ring.nth]))
        else:
            begin = initial_bucket(self._earlier(ring))
            addition = Addition(ring, chunk, begin, added(nth, row, None))
        self._begun[ring.nth], self._last[ring.nth] = chunk, row
        return addition

    def _earlier(self, ring: Ring) -> Row | None:
        """Return the row before a chunk's first row."""
        last = self._last[ring.nth]
        if last is not None:
            return last
        return None if self.values is None else encode_row(self.shape, self.values)
