from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.backoff_kind import BackoffKind
from ..models.jitter import Jitter
from ..types import UNSET, Unset

T = TypeVar("T", bound="BackoffConfig")


@_attrs_define
class BackoffConfig:
    """Delay after a failure for which the consumer sets none; n is the number of failures.

    fixed: initial. linear: initial * n. exponential: initial * multiplier^(n-1). list: the nth of `delays_seconds`,
    or its last. The delay is capped at `max_seconds`, then the jitter is applied: full draws from 0 to the delay, equal
    from half the delay to the delay.

        Attributes:
            kind (BackoffKind | Unset): Growth function f(n) of the delay after the nth failure.

                fixed: initial. linear: initial * n. exponential: initial * multiplier^(n-1). list: the nth of
                `delays_ms`, or its last.
            initial_seconds (float | Unset):  Default: 1.0.
            multiplier (float | Unset):  Default: 2.0.
            max_seconds (float | Unset):  Default: 900.0.
            delays_seconds (list[float] | Unset):
            jitter (Jitter | Unset): Random part of the delay.

                none: the delay itself. full: between 0 and the delay. equal: half the delay plus between 0 and the
                other half.
    """

    kind: BackoffKind | Unset = UNSET
    initial_seconds: float | Unset = 1.0
    multiplier: float | Unset = 2.0
    max_seconds: float | Unset = 900.0
    delays_seconds: list[float] | Unset = UNSET
    jitter: Jitter | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        kind: str | Unset = UNSET
        if not isinstance(self.kind, Unset):
            kind = self.kind.value

        initial_seconds = self.initial_seconds

        multiplier = self.multiplier

        max_seconds = self.max_seconds

        delays_seconds: list[float] | Unset = UNSET
        if not isinstance(self.delays_seconds, Unset):
            delays_seconds = self.delays_seconds

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

        initial_seconds = d.pop("initial_seconds", UNSET)

        multiplier = d.pop("multiplier", UNSET)

        max_seconds = d.pop("max_seconds", UNSET)

        delays_seconds = cast(list[float], d.pop("delays_seconds", UNSET))

        _jitter = d.pop("jitter", UNSET)
        jitter: Jitter | Unset
        if isinstance(_jitter, Unset):
            jitter = UNSET
        else:
            jitter = Jitter(_jitter)

        backoff_config = cls(
            kind=kind,
            initial_seconds=initial_seconds,
            multiplier=multiplier,
            max_seconds=max_seconds,
            delays_seconds=delays_seconds,
            jitter=jitter,
        )

        return backoff_config
