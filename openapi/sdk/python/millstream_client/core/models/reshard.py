from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.split import Split


T = TypeVar("T", bound="Reshard")


@_attrs_define
class Reshard:
    """A reshard: exactly one of the three.

    Attributes:
        shards (int | None | Unset): Number of shards with equal hash-key ranges.
        split (None | Split | Unset):
        merge (list[int] | None | Unset): Two shards with adjacent hash-key ranges.
    """

    shards: int | None | Unset = UNSET
    split: None | Split | Unset = UNSET
    merge: list[int] | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.split import Split  # noqa: PLC0415

        shards: int | None | Unset
        if isinstance(self.shards, Unset):
            shards = UNSET
        else:
            shards = self.shards

        split: dict[str, Any] | None | Unset
        if isinstance(self.split, Unset):
            split = UNSET
        elif isinstance(self.split, Split):
            split = self.split.to_dict()
        else:
            split = self.split

        merge: list[int] | None | Unset
        if isinstance(self.merge, Unset):
            merge = UNSET
        elif isinstance(self.merge, list):
            merge = []
            for merge_type_0_item_data in self.merge:
                merge_type_0_item: int
                merge_type_0_item = merge_type_0_item_data
                merge.append(merge_type_0_item)

        else:
            merge = self.merge

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if shards is not UNSET:
            field_dict["shards"] = shards
        if split is not UNSET:
            field_dict["split"] = split
        if merge is not UNSET:
            field_dict["merge"] = merge

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.split import Split  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_shards(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        shards = _parse_shards(d.pop("shards", UNSET))

        def _parse_split(data: object) -> None | Split | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                split_type_0 = Split.from_dict(data)

                return split_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Split | Unset, data)

        split = _parse_split(d.pop("split", UNSET))

        def _parse_merge(data: object) -> list[int] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                merge_type_0 = []
                _merge_type_0 = data
                for merge_type_0_item_data in _merge_type_0:

                    def _parse_merge_type_0_item(data: object) -> int:
                        return cast(int, data)

                    merge_type_0_item = _parse_merge_type_0_item(merge_type_0_item_data)

                    merge_type_0.append(merge_type_0_item)

                return merge_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[int] | None | Unset, data)

        merge = _parse_merge(d.pop("merge", UNSET))

        reshard = cls(
            shards=shards,
            split=split,
            merge=merge,
        )

        return reshard
