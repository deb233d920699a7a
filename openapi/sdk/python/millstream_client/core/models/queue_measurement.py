from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="QueueMeasurement")


@_attrs_define
class QueueMeasurement:
    """Counts and rates of a queue, measured every ten seconds.

    Rates are per second since the one before; null if there was none.

        Attributes:
            measured_at (datetime.datetime):
            ready (int):
            delayed (int):
            in_flight (int):
            parked (int):
            dead_lettered (int):
            bytes_held (int):
            consumers (int): Consumers that received in the last five minutes.
            oldest_ready_at (datetime.datetime | None):
            sent_per_second (float | None):
            received_per_second (float | None):
            acknowledged_per_second (float | None):
            failed_per_second (float | None): Deliveries that ended with a nack, a reject or without a verdict.
            failure_ratio (float | None): Failed deliveries among those that ended, from 0 to 1.
            acknowledge_p50_seconds (float | None): Median time from send to acknowledgement.
            acknowledge_p95_seconds (float | None):
            acknowledge_p99_seconds (float | None):
    """

    measured_at: datetime.datetime
    ready: int
    delayed: int
    in_flight: int
    parked: int
    dead_lettered: int
    bytes_held: int
    consumers: int
    oldest_ready_at: datetime.datetime | None
    sent_per_second: float | None
    received_per_second: float | None
    acknowledged_per_second: float | None
    failed_per_second: float | None
    failure_ratio: float | None
    acknowledge_p50_seconds: float | None
    acknowledge_p95_seconds: float | None
    acknowledge_p99_seconds: float | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        measured_at = self.measured_at.isoformat()

        ready = self.ready

        delayed = self.delayed

        in_flight = self.in_flight

        parked = self.parked

        dead_lettered = self.dead_lettered

        bytes_held = self.bytes_held

        consumers = self.consumers

        oldest_ready_at: None | str
        if isinstance(self.oldest_ready_at, datetime.datetime):
            oldest_ready_at = self.oldest_ready_at.isoformat()
        else:
            oldest_ready_at = self.oldest_ready_at

        sent_per_second: float | None
        sent_per_second = self.sent_per_second

        received_per_second: float | None
        received_per_second = self.received_per_second

        acknowledged_per_second: float | None
        acknowledged_per_second = self.acknowledged_per_second

        failed_per_second: float | None
        failed_per_second = self.failed_per_second

        failure_ratio: float | None
        failure_ratio = self.failure_ratio

        acknowledge_p50_seconds: float | None
        acknowledge_p50_seconds = self.acknowledge_p50_seconds

        acknowledge_p95_seconds: float | None
        acknowledge_p95_seconds = self.acknowledge_p95_seconds

        acknowledge_p99_seconds: float | None
        acknowledge_p99_seconds = self.acknowledge_p99_seconds

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "measured_at": measured_at,
                "ready": ready,
                "delayed": delayed,
                "in_flight": in_flight,
                "parked": parked,
                "dead_lettered": dead_lettered,
                "bytes_held": bytes_held,
                "consumers": consumers,
                "oldest_ready_at": oldest_ready_at,
                "sent_per_second": sent_per_second,
                "received_per_second": received_per_second,
                "acknowledged_per_second": acknowledged_per_second,
                "failed_per_second": failed_per_second,
                "failure_ratio": failure_ratio,
                "acknowledge_p50_seconds": acknowledge_p50_seconds,
                "acknowledge_p95_seconds": acknowledge_p95_seconds,
                "acknowledge_p99_seconds": acknowledge_p99_seconds,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        measured_at = datetime.datetime.fromisoformat(d.pop("measured_at"))

        ready = d.pop("ready")

        delayed = d.pop("delayed")

        in_flight = d.pop("in_flight")

        parked = d.pop("parked")

        dead_lettered = d.pop("dead_lettered")

        bytes_held = d.pop("bytes_held")

        consumers = d.pop("consumers")

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

        def _parse_sent_per_second(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        sent_per_second = _parse_sent_per_second(d.pop("sent_per_second"))

        def _parse_received_per_second(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        received_per_second = _parse_received_per_second(d.pop("received_per_second"))

        def _parse_acknowledged_per_second(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        acknowledged_per_second = _parse_acknowledged_per_second(d.pop("acknowledged_per_second"))

        def _parse_failed_per_second(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        failed_per_second = _parse_failed_per_second(d.pop("failed_per_second"))

        def _parse_failure_ratio(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        failure_ratio = _parse_failure_ratio(d.pop("failure_ratio"))

        def _parse_acknowledge_p50_seconds(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        acknowledge_p50_seconds = _parse_acknowledge_p50_seconds(d.pop("acknowledge_p50_seconds"))

        def _parse_acknowledge_p95_seconds(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        acknowledge_p95_seconds = _parse_acknowledge_p95_seconds(d.pop("acknowledge_p95_seconds"))

        def _parse_acknowledge_p99_seconds(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        acknowledge_p99_seconds = _parse_acknowledge_p99_seconds(d.pop("acknowledge_p99_seconds"))

        queue_measurement = cls(
            measured_at=measured_at,
            ready=ready,
            delayed=delayed,
            in_flight=in_flight,
            parked=parked,
            dead_lettered=dead_lettered,
            bytes_held=bytes_held,
            consumers=consumers,
            oldest_ready_at=oldest_ready_at,
            sent_per_second=sent_per_second,
            received_per_second=received_per_second,
            acknowledged_per_second=acknowledged_per_second,
            failed_per_second=failed_per_second,
            failure_ratio=failure_ratio,
            acknowledge_p50_seconds=acknowledge_p50_seconds,
            acknowledge_p95_seconds=acknowledge_p95_seconds,
            acknowledge_p99_seconds=acknowledge_p99_seconds,
        )

        queue_measurement.additional_properties = d
        return queue_measurement

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
