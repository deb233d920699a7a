from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.backoff_kind import BackoffKind
from ..models.jitter import Jitter
from ..types import UNSET, Unset

T = TypeVar("T", bound="BackoffOut")


@_attrs_define
class BackoffOut:
    """A queue's back-off.

    Attributes:
        kind (BackoffKind | Unset): f(n): initial · initial * n · initial * multiplier^(n-1) · the nth of `delays_ms`,
            or its last.
        initial_seconds (float | int | Unset):  Default: 1.
        multiplier (float | Unset):  Default: 2.0.
        max_seconds (float | int | Unset):  Default: 900.
        delays_seconds (list[float | int] | Unset):
        jitter (Jitter | Unset): none: the delay itself. full: 0 to the delay. equal: half of it, and 0 to the other
            half.
    """

    kind: BackoffKind | Unset = UNSET
    initial_seconds: float | int | Unset = 1
    multiplier: float | Unset = 2.0
    max_seconds: float | int | Unset = 900
    delays_seconds: list[float | int] | Unset = UNSET
    jitter: Jitter | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        kind: str | Unset = UNSET
        if not isinstance(self.kind, Unset):
            kind = self.kind.value

        initial_seconds: float | int | Unset
        if isinstance(self.initial_seconds, Unset):
            initial_seconds = UNSET
        else:
            initial_seconds = self.initial_seconds

        multiplier = self.multiplier

        max_seconds: float | int | Unset
        if isinstance(self.max_seconds, Unset):
            max_seconds = UNSET
        else:
            max_seconds = self.max_seconds

        delays_seconds: list[float | int] | Unset = UNSET
        if not isinstance(self.delays_seconds, Unset):
            delays_seconds = []
            for delays_seconds_item_data in self.delays_seconds:
                delays_seconds_item: float | int
                delays_seconds_item = delays_seconds_item_data
                delays_seconds.append(delays_seconds_item)

        jitter: str | Unset = UNSET
        if not isinstance(self.jitter, Unset):
            jitter = self.jitter.value

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if kind is not UNSET:
            field_dict["kind"] = kind
        if initial_seconds is not UNSET:
            field_dict["initial_seconds"] = initial_seconds
        if multiplier is not UNSET:
            field_dict["multiplier"] = multiplier
        if max_seconds is not UNSET:
            field_dict["max_seconds"] = max_seconds
        if delays_seconds is not UNSET:
            field_dict["delays_seconds"] = delays_seconds
        if jitter is not UNSET:
            field_dict["jitter"] = jitter

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        _kind = d.pop("kind", UNSET)
        kind: BackoffKind | Unset
        if isinstance(_kind, Unset):
            kind = UNSET
        else:
            kind = BackoffKind(_kind)

        def _parse_initial_seconds(data: object) -> float | int | Unset:
            if isinstance(data, Unset):
                return data
            return cast(float | int | Unset, data)

        initial_seconds = _parse_initial_seconds(d.pop("initial_seconds", UNSET))

        multiplier = d.pop("multiplier", UNSET)

        def _parse_max_seconds(data: object) -> float | int | Unset:
            if isinstance(data, Unset):
                return data
            return cast(float | int | Unset, data)

        max_seconds = _parse_max_seconds(d.pop("max_seconds", UNSET))

        _delays_seconds = d.pop("delays_seconds", UNSET)
        delays_seconds: list[float | int] | Unset = UNSET
        if _delays_seconds is not UNSET:
            delays_seconds = []
            for delays_seconds_item_data in _delays_seconds:

                def _parse_delays_seconds_item(data: object) -> float | int:
                    return cast(float | int, data)

                delays_seconds_item = _parse_delays_seconds_item(delays_seconds_item_data)

                delays_seconds.append(delays_seconds_item)

        _jitter = d.pop("jitter", UNSET)
        jitter: Jitter | Unset
        if isinstance(_jitter, Unset):
            jitter = UNSET
        else:
            jitter = Jitter(_jitter)

        backoff_out = cls(
            kind=kind,
            initial_seconds=initial_seconds,
            multiplier=multiplier,
            max_seconds=max_seconds,
            delays_seconds=delays_seconds,
            jitter=jitter,
        )

        return backoff_out
