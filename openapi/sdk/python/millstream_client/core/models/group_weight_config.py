from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="GroupWeightConfig")


@_attrs_define
class GroupWeightConfig:
    """How many messages of a group a standard queue delivers in its turn, where every other group has 1.

    `match` is a group's name, or the start of one and `*`; the first in the list that fits counts.

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
