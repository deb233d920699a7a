from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="GroupWeightConfig")


@_attrs_define
class GroupWeightConfig:
    """Number of messages of a group that a standard queue delivers per turn (other groups: 1).

    `match` is a group name, or a prefix followed by `*`; the first match in the list applies.

        Attributes:
            match (str):
            weight (int):
    """

    match: str
    weight: int

    def to_dict(self) -> dict[str, Any]:
        match = self.match

        weight = self.weight

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "match": match,
                "weight": weight,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        match = d.pop("match")

        weight = d.pop("weight")

        group_weight_config = cls(
            match=match,
            weight=weight,
        )

        return group_weight_config
