from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.view_back_test_message import ViewBackTestMessage


T = TypeVar("T", bound="ViewBackTestSink")


@_attrs_define
class ViewBackTestSink:
    """Messages that a sink would have got: their number, and the first 5 of at most 64 KiB.

    Attributes:
        sink (str): Kind and name, such as `queue:alerts`.
        messages (int):
        samples (list[ViewBackTestMessage]):
    """

    sink: str
    messages: int
    samples: list[ViewBackTestMessage]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        sink = self.sink

        messages = self.messages

        samples = []
        for samples_item_data in self.samples:
            samples_item = samples_item_data.to_dict()
            samples.append(samples_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "sink": sink,
                "messages": messages,
                "samples": samples,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.view_back_test_message import ViewBackTestMessage  # noqa: PLC0415

        d = dict(src_dict)
        sink = d.pop("sink")

        messages = d.pop("messages")

        samples = []
        _samples = d.pop("samples")
        for samples_item_data in _samples:
            samples_item = ViewBackTestMessage.from_dict(samples_item_data)

            samples.append(samples_item)

        view_back_test_sink = cls(
            sink=sink,
            messages=messages,
            samples=samples,
        )

        view_back_test_sink.additional_properties = d
        return view_back_test_sink

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
