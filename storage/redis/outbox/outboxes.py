"""Outboxes: typed wrappers of their scripts."""

from collections.abc import Sequence
from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.clock import ScriptTime
from storage.domain.sources.source import SourceCounts, SourceFailure
from storage.hot_store.outbox import (
    Acceptance,
    OfferedEvent,
    OutboxAddress,
    OutboxEntry,
    OutboxStore,
)
from storage.redis.keys import outbox_keys
from storage.redis.script_store import ScriptStore

_encoder = msgspec.msgpack.Encoder()
_failure = msgspec.msgpack.Decoder(SourceFailure)


class RedisOutboxStore(ScriptStore, OutboxStore):
    """Outboxes as one stream each, beside their counters and the ids of their events."""

    async def accept(
        self, outbox: OutboxAddress, event: OfferedEvent, bytes_max: int, now: ScriptTime
    ) -> Acceptance:
        keys = outbox_keys(*outbox)
        status = await self._pipeline.write(
            "accept_event",
            keys[:4],
            now,
            event.event_id,
            event.dedup_ms,
            limits.SOURCE_EVENT_IDS_MAX,
            bytes_max,
            event.payload,
        )
        return Acceptance(status)

    async def pending(
        self, outbox: OutboxAddress, entries_max: int
    ) -> tuple[list[OutboxEntry], bool]:
        keys = outbox_keys(*outbox)[1:2]
        rows, is_last = await self._pipeline.read(
            "read_outbox", keys, entries_max, limits.OUTBOX_BATCH_BYTES
        )
        return [OutboxEntry(int(sequence), payload) for sequence, payload in rows], bool(is_last)

    async def clear(self, outbox: OutboxAddress, sequences: Sequence[int]) -> None:
        keys = outbox_keys(*outbox)[:2]
        await self._pipeline.write("clear_outbox", keys, *sequences)

    async def note_rejected(
        self, outbox: OutboxAddress, failure: SourceFailure, now: ScriptTime
    ) -> None:
        await self._note(outbox, "rejected", _encoder.encode(failure), now)

    async def note_handshake(self, outbox: OutboxAddress, now: ScriptTime) -> None:
        await self._note(outbox, "handshakes", b"", now)

    async def _note(
        self, outbox: OutboxAddress, counter: str, failure: bytes, now: ScriptTime
    ) -> None:
        keys = outbox_keys(*outbox)
        await self._pipeline.write(
            "note_outbox",
            (keys[0], keys[4]),
            now,
            counter,
            failure,
            limits.SOURCE_FAILURES_MAX,
            limits.SOURCE_FAILURE_MS,
        )

    async def counts(self, outbox: OutboxAddress) -> SourceCounts:
        fields, entries, first, _ = await self._measure(outbox, 0)
        values = {
            name.decode(): int(number)
            for name, number in zip(fields[::2], fields[1::2], strict=True)
        }
        return SourceCounts(
            accepted=values.get("accepted", 0),
            duplicates=values.get("duplicates", 0),
            rejected=values.get("rejected", 0),
            handshakes=values.get("handshakes", 0),
            waiting=entries,
            waiting_bytes=values.get("bytes", 0),
            last_accepted_at_ms=values.get("accepted_ms"),
            last_rejected_at_ms=values.get("rejected_ms"),
            waiting_since_ms=int(first) // limits.OUTBOX_SEQUENCES_PER_MS if entries else None,
        )

    async def failures(self, outbox: OutboxAddress) -> list[SourceFailure]:
        *_, failures = await self._measure(outbox, limits.SOURCE_FAILURES_MAX)
        return [_failure.decode(failure) for failure in failures]

    async def _measure(self, outbox: OutboxAddress, failures_max: int) -> Sequence[Any]:
        keys = outbox_keys(*outbox)
        reply: Sequence[Any] = await self._pipeline.read(
            "measure_outbox", (keys[0], keys[1], keys[4]), failures_max
        )
        return reply

    async def delete(self, outbox: OutboxAddress) -> None:
        await self._pipeline.write("delete_outbox", outbox_keys(*outbox))
