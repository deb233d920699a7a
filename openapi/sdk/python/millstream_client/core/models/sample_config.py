from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.sample_by import SampleBy
from ..types import UNSET, Unset

T = TypeVar("T", bound="SampleConfig")


@_attrs_define
class SampleConfig:
    """A sample that is drawn the same way each time.

    Attributes:
        fraction (float):
        by (SampleBy | Unset): Sampling unit: a key is selected with all of its records.
    """

    fraction: float
    by: SampleBy | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        fraction = self.fraction

        by: str | Unset = UNSET
        if not isinstance(self.by, Unset):
            by = self.by.value

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "fraction": fraction,
            }
        )
        if by is not UNSET:
            field_dict["by"] = by

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        fraction = d.pop("fraction")

        _by = d.pop("by", UNSET)
        by: SampleBy | Unset
        if isinstance(_by, Unset):
            by = UNSET
        else:
            by = SampleBy(_by)

        sample_config = cls(
            fraction=fraction,
            by=by,
        )

        return sample_config
