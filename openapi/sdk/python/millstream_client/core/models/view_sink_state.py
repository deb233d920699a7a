from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ViewSinkState")


@_attrs_define
class ViewSinkState:
    """Messages of a sink: those that wait, and those that it got.

    Attributes:
        sink (str): Kind and name, such as `queue:alerts`.
        pending (int):
        sent (int):
        failure (str): Why the last call to the sink failed; empty if it did not.
    """

    sink: str
    pending: int
    sent: int
    failure: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        sink = self.sink

        pending = self.pending

        sent = self.sent

        failure = self.failure

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "sink": sink,
                "pending": pending,
                "sent": sent,
                "failure": failure,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        sink = d.pop("sink")

        pending = d.pop("pending")

        sent = d.pop("sent")

        failure = d.pop("failure")

        view_sink_state = cls(
            sink=sink,
            pending=pending,
            sent=sent,
            failure=failure,
        )

        view_sink_state.additional_properties = d
        return view_sink_state

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
