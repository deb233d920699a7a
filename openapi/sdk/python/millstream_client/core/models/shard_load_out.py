from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.key_load_out import KeyLoadOut
    from ..models.load_split_out import LoadSplitOut


T = TypeVar("T", bound="ShardLoadOut")


@_attrs_define
class ShardLoadOut:
    """Load of an open shard over the last minute, from a sample of its records.

    Attributes:
        shard (int):
        records_per_second (float):
        bytes_per_second (float):
        sampled (int): Records that were looked at; 0 for a shard that is not among the busiest.
        keyless_share (float): Share of the records without a key.
        keys (list[KeyLoadOut]): The most frequent keys.
        split (LoadSplitOut | None): The split that divides the load most evenly; null if one key makes so much of it
            that no split helps.
    """

    shard: int
    records_per_second: float
    bytes_per_second: float
    sampled: int
    keyless_share: float
    keys: list[KeyLoadOut]
    split: LoadSplitOut | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.load_split_out import LoadSplitOut  # noqa: PLC0415

        shard = self.shard

        records_per_second = self.records_per_second

        bytes_per_second = self.bytes_per_second

        sampled = self.sampled

        keyless_share = self.keyless_share

        keys = []
        for keys_item_data in self.keys:
            keys_item = keys_item_data.to_dict()
            keys.append(keys_item)

        split: dict[str, Any] | None
        if isinstance(self.split, LoadSplitOut):
            split = self.split.to_dict()
        else:
            split = self.split

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "shard": shard,
                "records_per_second": records_per_second,
                "bytes_per_second": bytes_per_second,
                "sampled": sampled,
                "keyless_share": keyless_share,
                "keys": keys,
                "split": split,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.key_load_out import KeyLoadOut  # noqa: PLC0415
        from ..models.load_split_out import LoadSplitOut  # noqa: PLC0415

        d = dict(src_dict)
        shard = d.pop("shard")

        records_per_second = d.pop("records_per_second")

        bytes_per_second = d.pop("bytes_per_second")

        sampled = d.pop("sampled")

        keyless_share = d.pop("keyless_share")

        keys = []
        _keys = d.pop("keys")
        for keys_item_data in _keys:
            keys_item = KeyLoadOut.from_dict(keys_item_data)

            keys.append(keys_item)

        def _parse_split(data: object) -> LoadSplitOut | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                split_type_0 = LoadSplitOut.from_dict(data)

                return split_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(LoadSplitOut | None, data)

        split = _parse_split(d.pop("split"))

        shard_load_out = cls(
            shard=shard,
            records_per_second=records_per_second,
            bytes_per_second=bytes_per_second,
            sampled=sampled,
            keyless_share=keyless_share,
            keys=keys,
            split=split,
        )

        shard_load_out.additional_properties = d
        return shard_load_out

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
