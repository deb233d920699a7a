"""Coalesced appends of a flush to one log: typed wrapper of append_records.lua."""

from collections.abc import Hashable, Sequence
from itertools import chain
from typing import Any

import msgspec

from storage.domain import limits
from storage.domain.clock import ScriptTime
from storage.domain.errors import (
    ArchiveBehind,
    DuplicateForgotten,
    FenceMismatch,
    IdempotencyKeyReused,
    OffsetMismatch,
    ProducerFenced,
    SequenceOutOfOrder,
    TooManyProducers,
)
from storage.domain.limits import Limits
from storage.domain.log.address import LogAddress
from storage.domain.log.record_batch import Record, encode_batch, encode_one
from storage.domain.streams.columnar_batch import PackedColumns, encode_columns
from storage.domain.streams.idempotence import PartialDuplicate
from storage.domain.streams.lineage import ShardClosedTo, unpack_children
from storage.hot_store.errors import ParentsRequired
from storage.hot_store.log_store import AppendPart, PartAppended
from storage.redis.keys import log_keys
from storage.redis.scripts import script
from storage.redis.transport.client import Reply
from storage.redis.transport.command import Command, command_of
from storage.redis.transport.script_status import refusal_in

_condition_encoder = msgspec.msgpack.Encoder()


class Appends:
    """Coalescer of the appends of one flush to one log, by log, epoch and time.

    Plain parts share a batch, others keep their own. `indexed`: the stream has a key index.
    """

    __slots__ = ("address", "alike", "indexed", "limits", "now", "store_epoch")

    def __init__(
        self, address: LogAddress, store_epoch: int, now: ScriptTime, limits: Limits, indexed: bool
    ) -> None:
        self.alike: Hashable = (Appends, address.log_id, store_epoch, now, indexed)
        self.address = address
        self.store_epoch = store_epoch
        self.now = now
        self.limits = limits
        self.indexed = indexed

    @property
    def key(self) -> bytes:
        """One of the log's keys."""
        return log_keys(self.address.namespace, self.address.log_id)[0]

    def commands(self, parts: Sequence[AppendPart]) -> list[tuple[Command, int]]:
        """Return one script call for each ENTRY_RECORDS_MAX records or ENTRY_BYTES_MAX bytes."""
        return [(self._command(run), len(run)) for run in _entries_of(parts)]

    def _command(self, parts: Sequence[AppendPart]) -> Command:
        plain = [part.records for part in parts if part.is_plain]
        arguments: list[bytes | int] = []
        if plain and self.indexed:
            records = [*chain.from_iterable(map(_as_records, plain))]
            arguments = [
                encode_batch(records),
                len(records),
                self._condition_of(AppendPart(records), _last_of_keys(records)),
            ]
        elif plain:
            arguments = [*_encode(plain), b""]
        for part in parts:
            if not part.is_plain:
                arguments += self._conditional(part)
        return command_of(
            script("append_records"),
            log_keys(self.address.namespace, self.address.log_id),
            self.now,
            self.store_epoch,
            limits.PRODUCER_IDLE_MS,
            self.limits.producers_max,
            limits.IDEMPOTENCY_WINDOW_MS,
            self.limits.idempotency_keys_max,
            self.limits.monotonic_writers_max,
            limits.DEDUP_WINDOW_MS,
            *arguments,
        )

    def _conditional(self, part: AppendPart) -> tuple[bytes, int, bytes]:
        """Return the arguments of a part with a condition."""
        if part.dedup_keys:
            batches = [*map(encode_one, _as_records(part.records))]
            keyed = [*zip(part.dedup_keys, map(len, batches), strict=True)]
            return b"".join(batches), len(batches), self._condition_of(part, False, False, keyed)
        return *_encode([part.records]), self._condition_of(part, *self._facts_of(part))

    def _condition_of(self, part: AppendPart, *facts: Any) -> bytes:
        """Encode a part's condition for append_records.lua."""
        condition = part.condition
        producer, expected = condition.producer, condition.expected_offset
        return _condition_encoder.encode(
            (
                producer.producer_id if producer else "",
                producer.epoch if producer else 0,
                producer.sequence if producer else 0,
                -1 if expected is None else expected,
                condition.fence,
                part.idempotency_key,
                part.fingerprint,
                *_inheritance_of(part),
                *facts,
            )
        )

    def _facts_of(self, part: AppendPart) -> list[Any]:
        keys = _last_of_keys(_as_records(part.records)) if self.indexed else False
        return [keys, part.claims] if part.claims else [keys] if self.indexed else []

    def abandoned(self, part: AppendPart, answer: PartAppended) -> None:
        """Do nothing: appended records stay."""

    def answers(self, parts: Sequence[AppendPart], reply: Reply) -> Sequence[Any]:
        """Return a PartAppended for each part, or the error to raise to its caller."""
        refusal = refusal_in(reply)
        if refusal is not None:
            return [refusal] * len(parts)
        now_ms, left, verdicts = reply[1], reply[2], iter(reply[3:])
        plain = next(verdicts) if any(part.is_plain for part in parts) else (0, 0)
        refused = _verdict(plain, left, now_ms) if plain[0] else None
        plain_at = plain[1]
        answers: list[PartAppended | Exception] = []
        for part in parts:
            if part.is_plain and refused:
                answers.append(refused)
            elif part.is_plain:
                answers.append(PartAppended(plain_at, False, left, now_ms))
                plain_at += len(part.records)
            else:
                answers.append(_verdict(next(verdicts), left, now_ms))
        return answers


def _encode(parts: Sequence[Sequence[Record] | PackedColumns]) -> tuple[bytes, int]:
    """Encode all records as one batch; return it and their number.

    Columns stay columns unless records are among them.
    """
    columns = [part for part in parts if isinstance(part, PackedColumns)]
    if len(columns) == len(parts):
        return encode_columns(columns), sum(map(len, columns))
    records = [*chain.from_iterable(map(_as_records, parts))]
    return encode_batch(records), len(records)


def _as_records(part: Sequence[Record] | PackedColumns) -> Sequence[Record]:
    return part.records() if isinstance(part, PackedColumns) else part


def _entries_of(parts: Sequence[AppendPart]) -> list[list[AppendPart]]:
    """Divide the parts, in order, into runs that fit one entry; a part is never split."""
    runs: list[list[AppendPart]] = [[]]
    records = size = 0
    for part in parts:
        records += len(part.records)
        size += part.size_bytes
        if runs[-1] and (records > limits.ENTRY_RECORDS_MAX or size > limits.ENTRY_BYTES_MAX):
            runs.append([])
            records, size = len(part.records), part.size_bytes
        runs[-1].append(part)
    return runs


def _last_of_keys(records: Sequence[Record]) -> dict[str, int]:
    """Return the number of each key's last record."""
    return {record.key: number for number, record in enumerate(records) if record.key}


def _inheritance_of(part: AppendPart) -> tuple[int, int]:
    if part.inherited is not None:
        return part.inherited.epoch, part.inherited.last
    return (-2 if part.needs_parents else -1), -1


def _verdict(verdict: Reply, left: int, now_ms: int) -> PartAppended | Exception:
    """Convert a result number of append_records.lua."""
    match verdict:
        case [0, offset]:
            return PartAppended(offset, False, left, now_ms)
        case [1, -1]:
            return DuplicateForgotten()
        case [1, offset]:
            return PartAppended(offset, True, left)
        case [2, epoch]:
            return ProducerFenced(current_epoch=epoch)
        case [3, children, *signed_offsets]:
            return ShardClosedTo(unpack_children(children), *signed_offsets)
        case [4, token]:
            return FenceMismatch(token=token.decode())
        case [5, sequence]:
            return SequenceOutOfOrder(expected_sequence=sequence)
        case [6, offset]:
            return OffsetMismatch(next_offset=offset)
        case [8, _]:
            return ParentsRequired()
        case [9, _]:
            return ArchiveBehind()
        case [10, lasts]:
            return PartialDuplicate(lasts)
        case [11, _]:
            return ProducerFenced("This producer is retired: it has sent all its records.")
        case [12, _]:
            return TooManyProducers()
        case [13, signed_offsets]:
            newest = max(max(one, -1 - one) for one in signed_offsets)
            return PartAppended(newest, False, left, now_ms, signed_offsets)
        case _:
            return IdempotencyKeyReused()
