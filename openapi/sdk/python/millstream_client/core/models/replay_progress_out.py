from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ReplayProgressOut")


@_attrs_define
class ReplayProgressOut:
    """Progress of the whole replay; `records` is the number of offsets in its range.

    Attributes:
        read (int):
        selected (int):
        sent (int):
        duplicates (int):
        bytes_ (int):
        expired (int): Number of records that expired before they were read.
        records (int):
        parts (int):
        parts_done (int):
    """

    read: int
    selected: int
    sent: int
    duplicates: int
    bytes_: int
    expired: int
    records: int
    parts: int
    parts_done: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        read = self.read

        selected = self.selected

        sent = self.sent

        duplicates = self.duplicates

        bytes_ = self.bytes_

        expired = self.expired

        records = self.records

        parts = self.parts

        parts_done = self.parts_done

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "read": read,
                "selected": selected,
                "sent": sent,
                "duplicates": duplicates,
                "bytes": bytes_,
                "expired": expired,
                "records": records,
                "parts": parts,
                "parts_done": parts_done,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        read = d.pop("read")

        selected = d.pop("selected")

        sent = d.pop("sent")

        duplicates = d.pop("duplicates")

        bytes_ = d.pop("bytes")

        expired = d.pop("expired")

        records = d.pop("records")

        parts = d.pop("parts")

        parts_done = d.pop("parts_done")

        replay_progress_out = cls(
            read=read,
            selected=selected,
            sent=sent,
            duplicates=duplicates,
            bytes_=bytes_,
            expired=expired,
            records=records,
            parts=parts,
            parts_done=parts_done,
        )

        replay_progress_out.additional_properties = d
        return replay_progress_out

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
