from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ShardArchiveOut")


@_attrs_define
class ShardArchiveOut:
    """A shard in both tiers.

    Records from `archive_start_offset` to `archived_offset` are in the archive.

        Attributes:
            shard (int):
            archive_start_offset (int | None):
            archived_offset (int | None): The next offset to archive.
            archived_at (datetime.datetime | None):
            hot_start_offset (int | None):
            next_offset (int | None):
            waiting_records (int): Number of records not yet archived.
            waiting_bytes (int):
            waiting_seconds (float): Age of the oldest of them.
            files (int):
            records (int): Number of records in the files.
            file_bytes (int):
            record_bytes (int): Size of the records as counted for retention.
    """

    shard: int
    archive_start_offset: int | None
    archived_offset: int | None
    archived_at: datetime.datetime | None
    hot_start_offset: int | None
    next_offset: int | None
    waiting_records: int
    waiting_bytes: int
    waiting_seconds: float
    files: int
    records: int
    file_bytes: int
    record_bytes: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        shard = self.shard

        archive_start_offset: int | None
        archive_start_offset = self.archive_start_offset

        archived_offset: int | None
        archived_offset = self.archived_offset

        archived_at: None | str
        if isinstance(self.archived_at, datetime.datetime):
            archived_at = self.archived_at.isoformat()
        else:
            archived_at = self.archived_at

        hot_start_offset: int | None
        hot_start_offset = self.hot_start_offset

        next_offset: int | None
        next_offset = self.next_offset

        waiting_records = self.waiting_records

        waiting_bytes = self.waiting_bytes

        waiting_seconds = self.waiting_seconds

        files = self.files

        records = self.records

        file_bytes = self.file_bytes

        record_bytes = self.record_bytes

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "shard": shard,
                "archive_start_offset": archive_start_offset,
                "archived_offset": archived_offset,
                "archived_at": archived_at,
                "hot_start_offset": hot_start_offset,
                "next_offset": next_offset,
                "waiting_records": waiting_records,
                "waiting_bytes": waiting_bytes,
                "waiting_seconds": waiting_seconds,
                "files": files,
                "records": records,
                "file_bytes": file_bytes,
                "record_bytes": record_bytes,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        shard = d.pop("shard")

        def _parse_archive_start_offset(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        archive_start_offset = _parse_archive_start_offset(d.pop("archive_start_offset"))

        def _parse_archived_offset(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        archived_offset = _parse_archived_offset(d.pop("archived_offset"))

        def _parse_archived_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                archived_at_type_0 = datetime.datetime.fromisoformat(data)

                return archived_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        archived_at = _parse_archived_at(d.pop("archived_at"))

        def _parse_hot_start_offset(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        hot_start_offset = _parse_hot_start_offset(d.pop("hot_start_offset"))

        def _parse_next_offset(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        next_offset = _parse_next_offset(d.pop("next_offset"))

        waiting_records = d.pop("waiting_records")

        waiting_bytes = d.pop("waiting_bytes")

        waiting_seconds = d.pop("waiting_seconds")

        files = d.pop("files")

        records = d.pop("records")

        file_bytes = d.pop("file_bytes")

        record_bytes = d.pop("record_bytes")

        shard_archive_out = cls(
            shard=shard,
            archive_start_offset=archive_start_offset,
            archived_offset=archived_offset,
            archived_at=archived_at,
            hot_start_offset=hot_start_offset,
            next_offset=next_offset,
            waiting_records=waiting_records,
            waiting_bytes=waiting_bytes,
            waiting_seconds=waiting_seconds,
            files=files,
            records=records,
            file_bytes=file_bytes,
            record_bytes=record_bytes,
        )

        shard_archive_out.additional_properties = d
        return shard_archive_out

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
