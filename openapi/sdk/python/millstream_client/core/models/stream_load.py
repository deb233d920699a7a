from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.shard_load_out import ShardLoadOut


T = TypeVar("T", bound="StreamLoad")


@_attrs_define
class StreamLoad:
    """Loads of the open shards of a stream.

    Attributes:
        window_seconds (float):
        items (list[ShardLoadOut]):
    """

    window_seconds: float
    items: list[ShardLoadOut]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        window_seconds = self.window_seconds

        items = []
        for items_item_data in self.items:
            items_item = items_item_data.to_dict()
            items.append(items_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "window_seconds": window_seconds,
                "items": items,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.shard_load_out import ShardLoadOut  # noqa: PLC0415

        d = dict(src_dict)
        window_seconds = d.pop("window_seconds")

        items = []
        _items = d.pop("items")
        for items_item_data in _items:
            items_item = ShardLoadOut.from_dict(items_item_data)

            items.append(items_item)

        stream_load = cls(
            window_seconds=window_seconds,
            items=items,
        )

        stream_load.additional_properties = d
        return stream_load

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
