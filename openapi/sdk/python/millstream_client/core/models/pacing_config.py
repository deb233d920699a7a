from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="PacingConfig")


@_attrs_define
class PacingConfig:
    """Speed of the whole replay.

    Attributes:
        records_per_second (float | None | Unset):
        bytes_per_second (float | None | Unset):
        speed (float | None | Unset): Multiple of the original arrival rate.
        lag_records_max (int | None | Unset): Wait while the backlog of the target's consumers exceeds this.
    """

    records_per_second: float | None | Unset = UNSET
    bytes_per_second: float | None | Unset = UNSET
    speed: float | None | Unset = UNSET
    lag_records_max: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        records_per_second: float | None | Unset
        if isinstance(self.records_per_second, Unset):
            records_per_second = UNSET
        else:
            records_per_second = self.records_per_second

        bytes_per_second: float | None | Unset
        if isinstance(self.bytes_per_second, Unset):
            bytes_per_second = UNSET
        else:
            bytes_per_second = self.bytes_per_second

        speed: float | None | Unset
        if isinstance(self.speed, Unset):
            speed = UNSET
        else:
            speed = self.speed

        lag_records_max: int | None | Unset
        if isinstance(self.lag_records_max, Unset):
            lag_records_max = UNSET
        else:
            lag_records_max = self.lag_records_max

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if records_per_second is not UNSET:
            field_dict["records_per_second"] = records_per_second
        if bytes_per_second is not UNSET:
            field_dict["bytes_per_second"] = bytes_per_second
        if speed is not UNSET:
            field_dict["speed"] = speed
        if lag_records_max is not UNSET:
            field_dict["lag_records_max"] = lag_records_max

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_records_per_second(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        records_per_second = _parse_records_per_second(d.pop("records_per_second", UNSET))

        def _parse_bytes_per_second(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        bytes_per_second = _parse_bytes_per_second(d.pop("bytes_per_second", UNSET))

        def _parse_speed(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        speed = _parse_speed(d.pop("speed", UNSET))

        def _parse_lag_records_max(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        lag_records_max = _parse_lag_records_max(d.pop("lag_records_max", UNSET))

        pacing_config = cls(
            records_per_second=records_per_second,
            bytes_per_second=bytes_per_second,
            speed=speed,
            lag_records_max=lag_records_max,
        )

        return pacing_config
