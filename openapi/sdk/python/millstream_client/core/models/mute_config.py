from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="MuteConfig")


@_attrs_define
class MuteConfig:
    """Duration of a mute.

    Attributes:
        duration_seconds (float): 60 to 2592000 (30 days); the mute ends by itself.
    """

    duration_seconds: float

    def to_dict(self) -> dict[str, Any]:
        duration_seconds = self.duration_seconds

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "duration_seconds": duration_seconds,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        duration_seconds = d.pop("duration_seconds")

        mute_config = cls(
            duration_seconds=duration_seconds,
        )

        return mute_config
