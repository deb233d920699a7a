from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="QueueStatsOut")


@_attrs_define
class QueueStatsOut:
    """Exact current counts.

    sent + moved_in = ready + delayed + in_flight + parked + dead_lettered + moving
                      + acknowledged + expired + purged + dropped + moved_out

        Attributes:
            ready (int):
            delayed (int):
            in_flight (int):
            dead_lettered (int):
            sent (int):
            deduplicated (int):
            acknowledged (int):
            expired (int):
            purged (int):
            receive_count (int):
            bytes_sent (int):
            moving (int): Messages in transfer to another queue.
            moved_in (int):
            moved_out (int):
            parked (int): Messages blocked until their group is resumed.
            dropped (int): Messages dropped for newer ones.
            bytes_held (int): Stored size of ready, delayed, in-flight and parked messages.
            oldest_ready_at (datetime.datetime | None):
            fenced (bool): The queue takes and delivers nothing: it is a copy of another deployment's queue, or was moved
                there.
            durability (str): 'always': acknowledged data is on disk. 'everysec': it is written shortly after. 'replicated':
                it is on the disks of enough stores to survive the loss of one.
            replication_factor (int | None): Number of stores that have the data; null where an engine replicates by itself.
            min_insync_replicas (int | None): How many of them a write is on before it is acknowledged.
            receives (int | Unset): Former name of `receive_count`, which replaces it.
    """

    ready: int
    delayed: int
    in_flight: int
    dead_lettered: int
    sent: int
    deduplicated: int
    acknowledged: int
    expired: int
    purged: int
    receive_count: int
    bytes_sent: int
    moving: int
    moved_in: int
    moved_out: int
    parked: int
    dropped: int
    bytes_held: int
    oldest_ready_at: datetime.datetime | None
    fenced: bool
    durability: str
    replication_factor: int | None
    min_insync_replicas: int | None
    receives: int | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        ready = self.ready

        delayed = self.delayed

        in_flight = self.in_flight

        dead_lettered = self.dead_lettered

        sent = self.sent

        deduplicated = self.deduplicated

        acknowledged = self.acknowledged

        expired = self.expired

        purged = self.purged

        receive_count = self.receive_count

        bytes_sent = self.bytes_sent

        moving = self.moving

        moved_in = self.moved_in

        moved_out = self.moved_out

        parked = self.parked

        dropped = self.dropped

        bytes_held = self.bytes_held

        oldest_ready_at: None | str
        if isinstance(self.oldest_ready_at, datetime.datetime):
            oldest_ready_at = self.oldest_ready_at.isoformat()
        else:
            oldest_ready_at = self.oldest_ready_at

        fenced = self.fenced

        durability = self.durability

        replication_factor: int | None
        replication_factor = self.replication_factor

        min_insync_replicas: int | None
        min_insync_replicas = self.min_insync_replicas

        receives = self.receives

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "ready": ready,
                "delayed": delayed,
                "in_flight": in_flight,
                "dead_lettered": dead_lettered,
                "sent": sent,
                "deduplicated": deduplicated,
                "acknowledged": acknowledged,
                "expired": expired,
                "purged": purged,
                "receive_count": receive_count,
                "bytes_sent": bytes_sent,
                "moving": moving,
                "moved_in": moved_in,
                "moved_out": moved_out,
                "parked": parked,
                "dropped": dropped,
                "bytes_held": bytes_held,
                "oldest_ready_at": oldest_ready_at,
                "fenced": fenced,
                "durability": durability,
                "replication_factor": replication_factor,
                "min_insync_replicas": min_insync_replicas,
            }
        )
        if receives is not UNSET:
            field_dict["receives"] = receives

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        ready = d.pop("ready")

        delayed = d.pop("delayed")

        in_flight = d.pop("in_flight")

        dead_lettered = d.pop("dead_lettered")

        sent = d.pop("sent")

        deduplicated = d.pop("deduplicated")

        acknowledged = d.pop("acknowledged")

        expired = d.pop("expired")

        purged = d.pop("purged")

        receive_count = d.pop("receive_count")

        bytes_sent = d.pop("bytes_sent")

        moving = d.pop("moving")

        moved_in = d.pop("moved_in")

        moved_out = d.pop("moved_out")

        parked = d.pop("parked")

        dropped = d.pop("dropped")

        bytes_held = d.pop("bytes_held")

        def _parse_oldest_ready_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                oldest_ready_at_type_0 = datetime.datetime.fromisoformat(data)

                return oldest_ready_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        oldest_ready_at = _parse_oldest_ready_at(d.pop("oldest_ready_at"))

        fenced = d.pop("fenced")

        durability = d.pop("durability")

        def _parse_replication_factor(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        replication_factor = _parse_replication_factor(d.pop("replication_factor"))

        def _parse_min_insync_replicas(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        min_insync_replicas = _parse_min_insync_replicas(d.pop("min_insync_replicas"))

        receives = d.pop("receives", UNSET)

        queue_stats_out = cls(
            ready=ready,
            delayed=delayed,
            in_flight=in_flight,
            dead_lettered=dead_lettered,
            sent=sent,
            deduplicated=deduplicated,
            acknowledged=acknowledged,
            expired=expired,
            purged=purged,
            receive_count=receive_count,
            bytes_sent=bytes_sent,
            moving=moving,
            moved_in=moved_in,
            moved_out=moved_out,
            parked=parked,
            dropped=dropped,
            bytes_held=bytes_held,
            oldest_ready_at=oldest_ready_at,
            fenced=fenced,
            durability=durability,
            replication_factor=replication_factor,
            min_insync_replicas=min_insync_replicas,
            receives=receives,
        )

        queue_stats_out.additional_properties = d
        return queue_stats_out

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
