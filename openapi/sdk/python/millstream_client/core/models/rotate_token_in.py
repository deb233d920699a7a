from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="RotateTokenIn")


@_attrs_define
class RotateTokenIn:
    """Overlap period in which the previous path is also valid.

    Attributes:
        overlap_seconds (float | Unset): 0 to 30 days; 0: the old path is invalid immediately. Default: 86400.0.
    """

    overlap_seconds: float | Unset = 86400.0

    def to_dict(self) -> dict[str, Any]:
        overlap_seconds = self.overlap_seconds

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if overlap_seconds is not UNSET:
            field_dict["overlap_seconds"] = overlap_seconds

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        overlap_seconds = d.pop("overlap_seconds", UNSET)

        rotate_token_in = cls(
            overlap_seconds=overlap_seconds,
        )

        return rotate_token_in
