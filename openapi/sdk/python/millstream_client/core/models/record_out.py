from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.record_out_headers import RecordOutHeaders
    from ..models.record_out_headers_base_64 import RecordOutHeadersBase64


T = TypeVar("T", bound="RecordOut")


@_attrs_define
class RecordOut:
    """A record with its offset. `shard` is present when several are read.

    Attributes:
        offset (int):
        arrival_time (datetime.datetime):
        shard (int | Unset):
        data (Any | Unset): A string is stored as UTF-8 text, any other value as compact JSON.
        data_base64 (str | Unset): Bytes in standard base64.
        content_type (str | Unset):  Default: ''.
        key (str | Unset):  Default: ''.
        subject (str | Unset): Of a message that was published to a topic. Default: ''.
        headers (RecordOutHeaders | Unset):
        headers_base64 (RecordOutHeadersBase64 | Unset):
        event_time (datetime.datetime | Unset):
    """

    offset: int
    arrival_time: datetime.datetime
    shard: int | Unset = UNSET
    data: Any | Unset = UNSET
    data_base64: str | Unset = UNSET
    content_type: str | Unset = ""
    key: str | Unset = ""
    subject: str | Unset = ""
    headers: RecordOutHeaders | Unset = UNSET
    headers_base64: RecordOutHeadersBase64 | Unset = UNSET
    event_time: datetime.datetime | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        offset = self.offset

        arrival_time = self.arrival_time.isoformat()

        shard = self.shard

        data = self.data

        data_base64 = self.data_base64

        content_type = self.content_type

        key = self.key

        subject = self.subject

        headers: dict[str, Any] | Unset = UNSET
        if not isinstance(self.headers, Unset):
            headers = self.headers.to_dict()

        headers_base64: dict[str, Any] | Unset = UNSET
        if not isinstance(self.headers_base64, Unset):
            headers_base64 = self.headers_base64.to_dict()

        event_time: str | Unset = UNSET
        if not isinstance(self.event_time, Unset):
            event_time = self.event_time.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "offset": offset,
                "arrival_time": arrival_time,
            }
        )
        if shard is not UNSET:
            field_dict["shard"] = shard
        if data is not UNSET:
            field_dict["data"] = data
        if data_base64 is not UNSET:
            field_dict["data_base64"] = data_base64
        if content_type is not UNSET:
            field_dict["content_type"] = content_type
        if key is not UNSET:
            field_dict["key"] = key
        if subject is not UNSET:
            field_dict["subject"] = subject
        if headers is not UNSET:
            field_dict["headers"] = headers
        if headers_base64 is not UNSET:
            field_dict["headers_base64"] = headers_base64
        if event_time is not UNSET:
            field_dict["event_time"] = event_time

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.record_out_headers import RecordOutHeaders  # noqa: PLC0415
        from ..models.record_out_headers_base_64 import RecordOutHeadersBase64  # noqa: PLC0415

        d = dict(src_dict)
        offset = d.pop("offset")

        arrival_time = datetime.datetime.fromisoformat(d.pop("arrival_time"))

        shard = d.pop("shard", UNSET)

        data = d.pop("data", UNSET)

        data_base64 = d.pop("data_base64", UNSET)

        content_type = d.pop("content_type", UNSET)

        key = d.pop("key", UNSET)

        subject = d.pop("subject", UNSET)

        _headers = d.pop("headers", UNSET)
        headers: RecordOutHeaders | Unset
        if isinstance(_headers, Unset):
            headers = UNSET
        else:
            headers = RecordOutHeaders.from_dict(_headers)

        _headers_base64 = d.pop("headers_base64", UNSET)
        headers_base64: RecordOutHeadersBase64 | Unset
        if isinstance(_headers_base64, Unset):
            headers_base64 = UNSET
        else:
            headers_base64 = RecordOutHeadersBase64.from_dict(_headers_base64)

        _event_time = d.pop("event_time", UNSET)
        event_time: datetime.datetime | Unset
        if isinstance(_event_time, Unset):
            event_time = UNSET
        else:
            event_time = datetime.datetime.fromisoformat(_event_time)

        record_out = cls(
            offset=offset,
            arrival_time=arrival_time,
            shard=shard,
            data=data,
            data_base64=data_base64,
            content_type=content_type,
            key=key,
            subject=subject,
            headers=headers,
            headers_base64=headers_base64,
            event_time=event_time,
        )

        record_out.additional_properties = d
        return record_out

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
