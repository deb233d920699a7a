from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.copied_message import CopiedMessage


T = TypeVar("T", bound="QueueContentsPage")


@_attrs_define
class QueueContentsPage:
    """Messages of a queue, or of one of its partitions, by offset.

    `after`: the offset to continue after, None at the end.

        Attributes:
            queue_id (str):
            messages (list[CopiedMessage]):
            after (int | None):
    """

    queue_id: str
    messages: list[CopiedMessage]
    after: int | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        queue_id = self.queue_id

        messages = []
        for messages_item_data in self.messages:
            messages_item = messages_item_data.to_dict()
            messages.append(messages_item)

        after: int | None
        after = self.after

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "queue_id": queue_id,
                "messages": messages,
                "after": after,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.copied_message import CopiedMessage  # noqa: PLC0415

        d = dict(src_dict)
        queue_id = d.pop("queue_id")

        messages = []
        _messages = d.pop("messages")
        for messages_item_data in _messages:
            messages_item = CopiedMessage.from_dict(messages_item_data)

            messages.append(messages_item)

        def _parse_after(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        after = _parse_after(d.pop("after"))

        queue_contents_page = cls(
            queue_id=queue_id,
            messages=messages,
            after=after,
        )

        queue_contents_page.additional_properties = d
        return queue_contents_page

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
