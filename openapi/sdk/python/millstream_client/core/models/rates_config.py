from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="RatesConfig")


@_attrs_define
class RatesConfig:
    """Rate limits per second. Messages and bytes count sends and appends.

    Attributes:
        calls_per_second (float | None | Unset): null: no limit.
        messages_per_second (float | None | Unset): null: no limit.
        bytes_per_second (float | None | Unset): null: no limit.
        burst_seconds (float | Unset): Burst size, in seconds at the full rate. Default: 1.0.
    """

    calls_per_second: float | None | Unset = UNSET
    messages_per_second: float | None | Unset = UNSET
    bytes_per_second: float | None | Unset = UNSET
    burst_seconds: float | Unset = 1.0

    def to_dict(self) -> dict[str, Any]:
        calls_per_second: float | None | Unset
        if isinstance(self.calls_per_second, Unset):
            calls_per_second = UNSET
        else:
            calls_per_second = self.calls_per_second

        messages_per_second: float | None | Unset
        if isinstance(self.messages_per_second, Unset):
            messages_per_second = UNSET
        else:
            messages_per_second = self.messages_per_second

        bytes_per_second: float | None | Unset
        if isinstance(self.bytes_per_second, Unset):
            bytes_per_second = UNSET
        else:
            bytes_per_second = self.bytes_per_second

        burst_seconds = self.burst_seconds

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if calls_per_second is not UNSET:
            field_dict["calls_per_second"] = calls_per_second
        if messages_per_second is not UNSET:
            field_dict["messages_per_second"] = messages_per_second
        if bytes_per_second is not UNSET:
            field_dict["bytes_per_second"] = bytes_per_second
        if burst_seconds is not UNSET:
            field_dict["burst_seconds"] = burst_seconds

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_calls_per_second(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        calls_per_second = _parse_calls_per_second(d.pop("calls_per_second", UNSET))

        def _parse_messages_per_second(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        messages_per_second = _parse_messages_per_second(d.pop("messages_per_second", UNSET))

        def _parse_bytes_per_second(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        bytes_per_second = _parse_bytes_per_second(d.pop("bytes_per_second", UNSET))

        burst_seconds = d.pop("burst_seconds", UNSET)

        rates_config = cls(
            calls_per_second=calls_per_second,
            messages_per_second=messages_per_second,
            bytes_per_second=bytes_per_second,
            burst_seconds=burst_seconds,
        )

        return rates_config
