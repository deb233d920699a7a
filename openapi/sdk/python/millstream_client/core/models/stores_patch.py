from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="StoresPatch")


@_attrs_define
class StoresPatch:
    """Settings of the replica set.

    Attributes:
        min_insync_replicas (int): Stores, including the primary, that must have a write on disk before it is
            acknowledged.
    """

    min_insync_replicas: int

    def to_dict(self) -> dict[str, Any]:
        min_insync_replicas = self.min_insync_replicas

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "min_insync_replicas": min_insync_replicas,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        min_insync_replicas = d.pop("min_insync_replicas")

        stores_patch = cls(
            min_insync_replicas=min_insync_replicas,
        )

        return stores_patch
