"""In-memory streams: shards, appends by key, and reads from a position."""

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from millstream_client.bodies import decode_json
from millstream_client.testing.cursors import decode_cursor, encode_cursor
from millstream_client.testing.definitions import Clock, Defined, moment, seconds_of
from millstream_client.testing.problems import Problem

HASH_KEYS = 2**128


@dataclass
class StoredRecord:
    """A record of a stream."""

    shard: int
    offset: int
    data: bytes
    content_type: str
    headers: dict[str, str]
    key: str
    arrived_at: float
    event_time: str | None
    sequence: int
    subject: str = ""
    hops: int = 0

    @property
    def text(self) -> str:
        """The data as text."""
        return self.data.decode()

    def json(self) -> Any:
        """The data as a JSON value. Raises ValueError if it is not JSON."""
        return decode_json(self.data)

    def shown(self, *, with_shard: bool = True) -> dict[str, Any]:
        """Return the record as a read does."""
        optional = {
            "content_type": self.content_type,
            "headers": self.headers,
            "key": self.key,
            "subject": self.subject,
            "event_time": self.event_time,
        }
        return {
            **({"shard": self.shard} if with_shard else {}),
            "offset": self.offset,
            "data": self.data,
            **{name: value for name, value in optional.items() if value},
            "arrival_time": moment(self.arrived_at),
        }


class Shard:
    """Records of a shard with dense offsets; the first ones may have expired."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.start = 0
        self.records: list[StoredRecord] = []

    @property
    def next(self) -> int:
        """Offset of the next record."""
        return self.start + len(self.records)

    def since(self, offset: int) -> list[StoredRecord]:
        """Return the records from an offset."""
        return self.records[max(0, offset - self.start) :]

    def offset_at(self, at: float) -> int:
        """Return the offset of the first record that arrived at a time or later."""
        later = (record.offset for record in self.records if record.arrived_at >= at)
        return next(later, self.next)

    def expire(self, before: float) -> None:
        """Delete the records that arrived before a time."""
        expired = self.offset_at(before) - self.start
        self.start += expired
        del self.records[:expired]

    def gap(self, offset: int) -> dict[str, Any] | None:
        """Return the expired offsets from an offset."""
        if offset >= self.start:
            return None
        return {"shard": self.index, "first": offset, "next": self.start, "reason": "expired"}


class MemoryStream(Defined):
    """A stream. Its configuration has the fields of the REST API."""

    def __init__(self, name: str, config: dict[str, Any], now: Clock) -> None:
        super().__init__(name, config, now)
        self.id = uuid.uuid4().hex[:16]
        self._shards = [Shard(index) for index in range(config["shards"])]
        self._sequence = count()
        self._turn = count()

    @property
    def shards(self) -> list[Shard]:
        """Shards, without expired records."""
        retention = self.config["retention_seconds"]
        for shard in self._shards if retention is not None else ():
            shard.expire(self.now() - retention)
        return self._shards

    @property
    def records(self) -> list[StoredRecord]:
        """Records of all shards, by arrival."""
        records = [record for shard in self.shards for record in shard.records]
        return sorted(records, key=lambda record: record.sequence)

    def shown(self) -> dict[str, Any]:
        """Return the configuration as the API does."""
        config = {name: value for name, value in super().shown().items() if name != "paused"}
        return {**config, "open_shards": len(self._shards)}

    def shard(self, index: int) -> Shard:
        """Return a shard. Raises Problem."""
        if not 0 <= index < len(self._shards):
            raise Problem("shard_not_found", f"Stream {self.name!r} has no shard {index}.")
        return self.shards[index]

    # ── Appending ──

    def append(self, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Append records; those without a key go to one shard, another with each call."""
        self._check_sizes(records)
        turn = next(self._turn) % len(self._shards)
        return [self._append(fields, self._shard_of(fields, turn)) for fields in records]

    def append_to_shard(self, index: int, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Append records to one shard, all of them or none."""
        self._check_sizes(body["records"])
        shard, expected = self.shard(index), body.get("expected_offset")
        if expected is not None and expected != shard.next:
            detail = f"The shard's next offset is {shard.next}."
            raise Problem("offset_mismatch", detail, next_offset=shard.next)
        return [self._append(fields, shard) for fields in body["records"]]

    def _check_sizes(self, records: list[dict[str, Any]]) -> None:
        if any(len(fields["data"]) > self.config["record_bytes_max"] for fields in records):
            raise Problem("message_too_large", "The record is too large.")

    def _shard_of(self, fields: dict[str, Any], turn: int) -> Shard:
        key = fields.get("key", "")
        if not key and not fields.get("hash_key"):
            return self._shards[turn]
        digest = hashlib.md5(key.encode(), usedforsecurity=False).digest()
        place = int(fields.get("hash_key") or int.from_bytes(digest, "big"))
        return self._shards[place * len(self._shards) // HASH_KEYS]

    def _append(self, fields: dict[str, Any], shard: Shard) -> dict[str, Any]:
        record = StoredRecord(
            shard=shard.index,
            offset=shard.next,
            data=fields["data"],
            content_type=fields.get("content_type", ""),
            headers=fields.get("headers", {}),
            key=fields.get("key", ""),
            arrived_at=self.now(),
            event_time=fields.get("event_time"),
            sequence=next(self._sequence),
            subject=fields.get("subject", ""),
            hops=fields.get("hops", 0),
        )
        shard.records.append(record)
        return {"shard": shard.index, "offset": record.offset, "duplicate": False}

    # ── Reading ──

    def read(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Read all shards by arrival."""
        positions = self._positions(query)
        records, gaps = self.since(positions, int(query.get("limit", 1000)))
        return {
            "records": [record.shown() for record in records],
            "next_cursor": encode_cursor(self.id, positions),
            "behind_seconds": 0,
            "tier": "hot",
            "gaps": gaps,
        }

    def since(
        self, positions: dict[int, int], limit: int
    ) -> tuple[list[StoredRecord], list[dict[str, Any]]]:
        """Return the next records of shards by arrival, and gaps; advance the positions."""
        shards = [self.shard(index) for index in positions]
        gaps = [gap for shard in shards if (gap := shard.gap(positions[shard.index]))]
        waiting = [record for shard in shards for record in shard.since(positions[shard.index])]
        records = sorted(waiting, key=lambda record: record.sequence)[:limit]
        positions.update({gap["shard"]: gap["next"] for gap in gaps})
        positions.update({record.shard: record.offset + 1 for record in records})
        return records, gaps

    def _positions(self, query: Mapping[str, str]) -> dict[int, int]:
        if "cursor" in query:
            stream_id, positions = decode_cursor(query["cursor"])
            if stream_id != self.id:
                raise Problem("invalid_cursor", "The cursor belongs to a deleted stream.")
            return {int(shard): int(offset) for shard, offset in positions.items()}
        if "time" in query:
            return self.positions_at(seconds_of(query["time"]))
        return self.ends() if query.get("from") == "latest" else self.starts()

    def starts(self) -> dict[int, int]:
        """Return the oldest offset of each shard."""
        return {shard.index: shard.start for shard in self.shards}

    def ends(self) -> dict[int, int]:
        """Return the next offset of each shard."""
        return {shard.index: shard.next for shard in self.shards}

    def positions_at(self, at: float) -> dict[int, int]:
        """Return the offset of the first record that arrived at a time or later, by shard."""
        return {shard.index: shard.offset_at(at) for shard in self.shards}

    def read_shard(self, index: int, query: Mapping[str, str]) -> dict[str, Any]:
        """Read one shard from an offset, a time, or its last records."""
        if query.get("stream_id", self.id) != self.id:
            raise Problem("stream_recreated", "The offset belongs to an earlier stream.")
        shard = self.shard(index)
        offset = self._offset(shard, query)
        if offset > shard.next:
            detail = f"The shard's next offset is {shard.next}."
            raise Problem("offset_out_of_range", detail, next_offset=shard.next)
        records = shard.since(offset)[: int(query.get("limit", 1000))]
        gap = shard.gap(offset)
        return {
            "records": [record.shown(with_shard=False) for record in records],
            "stream_id": self.id,
            "next_offset": records[-1].offset + 1 if records else max(offset, shard.start),
            "start": shard.start,
            "tip": shard.next,
            "behind_seconds": 0,
            "tier": "hot",
            "ended": False,
            **({"gap": gap} if gap else {}),
        }

    @staticmethod
    def _offset(shard: Shard, query: Mapping[str, str]) -> int:
        if "offset" in query:
            return int(query["offset"])
        if "time" in query:
            return shard.offset_at(seconds_of(query["time"]))
        return max(shard.start, shard.next - int(query["tail"])) if "tail" in query else shard.start

    def list_shards(self) -> dict[str, Any]:
        """Return the shards with their extents."""
        return {"stream_id": self.id, "items": [self._extent(shard) for shard in self.shards]}

    def _extent(self, shard: Shard) -> dict[str, Any]:
        bounds = [
            HASH_KEYS * place // len(self._shards) for place in (shard.index, shard.index + 1)
        ]
        return {
            "index": shard.index,
            "open": True,
            "parents": [],
            "opened_at": moment(self.created_at),
            "closed_at": None,
            "first_hash_key": str(bounds[0]),
            "last_hash_key": str(bounds[1] - 1),
            "start": shard.start,
            "next": shard.next,
            "bytes": sum(len(record.data) for record in shard.records),
            "fenced": False,
        }
