from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.record_in_headers import RecordInHeaders


T = TypeVar("T", bound="RecordIn")


@_attrs_define
class RecordIn:
    """A record to append: `data` or `data_base64`.

    Attributes:
        data_base64 (str | Unset): Bytes in standard base64.
        key (str | Unset): Partition key. Records with the same key stay in one shard, in order. Default: ''.
        headers (RecordInHeaders | Unset): Header names (without a leading ':') and text values.
        content_type (str | Unset): Content type of the body. With 'application/json', responses return it as a JSON
            value. Default: ''.
        event_time (datetime.datetime | None | Unset):
        hash_key (None | str | Unset): Hash key, which overrides the one derived from the key. Not allowed when
            appending to a shard.
        data (Any | Unset): A string is stored as UTF-8 text, any other value as compact JSON.
    """

    data_base64: str | Unset = UNSET
    key: str | Unset = ""
    headers: RecordInHeaders | Unset = UNSET
    content_type: str | Unset = ""
    event_time: datetime.datetime | None | Unset = UNSET
    hash_key: None | str | Unset = UNSET
    data: Any | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        data_base64 = self.data_base64

        key = self.key

        headers: dict[str, Any] | Unset = UNSET
        if not isinstance(self.headers, Unset):
            headers = self.headers.to_dict()

        content_type = self.content_type

        event_time: None | str | Unset
        if isinstance(self.event_time, Unset):
            event_time = UNSET
        elif isinstance(self.event_time, datetime.datetime):
            event_time = self.event_time.isoformat()
        else:
            event_time = self.event_time

        hash_key: None | str | Unset
        if isinstance(self.hash_key, Unset):
            hash_key = UNSET
        else:
            hash_key = self.hash_key

        data = self.data

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if data_base64 is not UNSET:
            field_dict["data_base64"] = data_base64
        if key is not UNSET:
            field_dict["key"] = key
        if headers is not UNSET:
            field_dict["headers"] = headers
        if content_type is not UNSET:
            field_dict["content_type"] = content_type
        if event_time is not UNSET:
            field_dict["event_time"] = event_time
        if hash_key is not UNSET:
            field_dict["hash_key"] = hash_key
        if data is not UNSET:
            field_dict["data"] = data

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.record_in_headers import RecordInHeaders  # noqa: PLC0415

        d = dict(src_dict)
        data_base64 = d.pop("data_base64", UNSET)

        key = d.pop("key", UNSET)

        _headers = d.pop("headers", UNSET)
        headers: RecordInHeaders | Unset
        if isinstance(_headers, Unset):
            headers = UNSET
        else:
            headers = RecordInHeaders.from_dict(_headers)

        content_type = d.pop("content_type", UNSET)

        def _parse_event_time(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                event_time_type_0 = datetime.datetime.fromisoformat(data)

                return event_time_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        event_time = _parse_event_time(d.pop("event_time", UNSET))

        def _parse_hash_key(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        hash_key = _parse_hash_key(d.pop("hash_key", UNSET))

        data = d.pop("data", UNSET)

        record_in = cls(
            data_base64=data_base64,
            key=key,
            headers=headers,
            content_type=content_type,
            event_time=event_time,
            hash_key=hash_key,
            data=data,
        )

        return record_in
