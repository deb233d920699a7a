from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ArchivedFileOut")


@_attrs_define
class ArchivedFileOut:
    """One Parquet file: records with offsets from `first_offset` to below `next_offset`.

    Attributes:
        id (str):
        shard (int):
        first_offset (int):
        next_offset (int):
        records (int):
        file_bytes (int):
        record_bytes (int):
        first_arrival (datetime.datetime):
        last_arrival (datetime.datetime):
        path (str): Path relative to the archive root.
    """

    id: str
    shard: int
    first_offset: int
    next_offset: int
    records: int
    file_bytes: int
    record_bytes: int
    first_arrival: datetime.datetime
    last_arrival: datetime.datetime
    path: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        shard = self.shard

        first_offset = self.first_offset

        next_offset = self.next_offset

        records = self.records

        file_bytes = self.file_bytes

        record_bytes = self.record_bytes

        first_arrival = self.first_arrival.isoformat()

        last_arrival = self.last_arrival.isoformat()

        path = self.path

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "shard": shard,
                "first_offset": first_offset,
                "next_offset": next_offset,
                "records": records,
                "file_bytes": file_bytes,
                "record_bytes": record_bytes,
                "first_arrival": first_arrival,
                "last_arrival": last_arrival,
                "path": path,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        shard = d.pop("shard")

        first_offset = d.pop("first_offset")

        next_offset = d.pop("next_offset")

        records = d.pop("records")

        file_bytes = d.pop("file_bytes")

        record_bytes = d.pop("record_bytes")

        first_arrival = datetime.datetime.fromisoformat(d.pop("first_arrival"))

        last_arrival = datetime.datetime.fromisoformat(d.pop("last_arrival"))

        path = d.pop("path")

        archived_file_out = cls(
            id=id,
            shard=shard,
            first_offset=first_offset,
            next_offset=next_offset,
            records=records,
            file_bytes=file_bytes,
            record_bytes=record_bytes,
            first_arrival=first_arrival,
            last_arrival=last_arrival,
            path=path,
        )

        archived_file_out.additional_properties = d
        return archived_file_out

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
