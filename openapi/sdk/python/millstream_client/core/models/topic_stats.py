from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="TopicStats")


@_attrs_define
class TopicStats:
    """Messages that a topic keeps, and how many its routers have not examined yet.

    Attributes:
        messages (int): In the topic's log.
        bytes_held (int): In the hot store.
        routes (int):
        lag_messages (int): Messages that routers have not examined yet, whether routes take them.
        lag_seconds (float): Age of the oldest of these messages.
    """

    messages: int
    bytes_held: int
    routes: int
    lag_messages: int
    lag_seconds: float
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        messages = self.messages

        bytes_held = self.bytes_held

        routes = self.routes

        lag_messages = self.lag_messages

        lag_seconds = self.lag_seconds

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "messages": messages,
                "bytes_held": bytes_held,
                "routes": routes,
                "lag_messages": lag_messages,
                "lag_seconds": lag_seconds,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        messages = d.pop("messages")

        bytes_held = d.pop("bytes_held")

        routes = d.pop("routes")

        lag_messages = d.pop("lag_messages")

        lag_seconds = d.pop("lag_seconds")

        topic_stats = cls(
            messages=messages,
            bytes_held=bytes_held,
            routes=routes,
            lag_messages=lag_messages,
            lag_seconds=lag_seconds,
        )

        topic_stats.additional_properties = d
        return topic_stats

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
