from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.queue_consumer_out import QueueConsumerOut


T = TypeVar("T", bound="QueueConsumerList")


@_attrs_define
class QueueConsumerList:
    """The consumers of a queue, most messages first.

    Attributes:
        items (list[QueueConsumerOut]):
        in_flight_is_estimate (bool): More than 5,000 messages are in flight: `in_flight` is extrapolated from those.
    """

    items: list[QueueConsumerOut]
    in_flight_is_estimate: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        items = []
        for items_item_data in self.items:
            items_item = items_item_data.to_dict()
            items.append(items_item)

        in_flight_is_estimate = self.in_flight_is_estimate

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "items": items,
                "in_flight_is_estimate": in_flight_is_estimate,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.queue_consumer_out import QueueConsumerOut  # noqa: PLC0415

        d = dict(src_dict)
        items = []
        _items = d.pop("items")
        for items_item_data in _items:
            items_item = QueueConsumerOut.from_dict(items_item_data)

            items.append(items_item)

        in_flight_is_estimate = d.pop("in_flight_is_estimate")

        queue_consumer_list = cls(
            items=items,
            in_flight_is_estimate=in_flight_is_estimate,
        )

        queue_consumer_list.additional_properties = d
        return queue_consumer_list

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
