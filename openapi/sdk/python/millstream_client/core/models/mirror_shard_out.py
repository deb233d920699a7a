from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="MirrorShardOut")


@_attrs_define
class MirrorShardOut:
    """Progress on one shard of the other deployment's stream.

    Attributes:
        stream (str):
        shard (int): Number of the shard in the other deployment.
        next_offset (int): Offset there of the next record to copy.
        tip (int): Next offset to be written there.
        lag_records (int): Number of records and messages that are not here yet, when the origin last answered.
        lag_seconds (float): Maximum age of a record or message that is not here yet. It grows while the origin does not
            answer.
        copied (int): Number of records that were copied.
        skipped (int): Number of records that came from here.
        ended (bool): Whether it is closed, and completely copied.
        checked_at (datetime.datetime | None): When the origin last answered.
        failure (str): Why the last attempt failed; empty if it did not.
    """

    stream: str
    shard: int
    next_offset: int
    tip: int
    lag_records: int
    lag_seconds: float
    copied: int
    skipped: int
    ended: bool
    checked_at: datetime.datetime | None
    failure: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        stream = self.stream

        shard = self.shard

        next_offset = self.next_offset

        tip = self.tip

        lag_records = self.lag_records

        lag_seconds = self.lag_seconds

        copied = self.copied

        skipped = self.skipped

        ended = self.ended

        checked_at: None | str
        if isinstance(self.checked_at, datetime.datetime):
            checked_at = self.checked_at.isoformat()
        else:
            checked_at = self.checked_at

        failure = self.failure

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "stream": stream,
                "shard": shard,
                "next_offset": next_offset,
                "tip": tip,
                "lag_records": lag_records,
                "lag_seconds": lag_seconds,
                "copied": copied,
                "skipped": skipped,
                "ended": ended,
                "checked_at": checked_at,
                "failure": failure,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        stream = d.pop("stream")

        shard = d.pop("shard")

        next_offset = d.pop("next_offset")

        tip = d.pop("tip")

        lag_records = d.pop("lag_records")

        lag_seconds = d.pop("lag_seconds")

        copied = d.pop("copied")

        skipped = d.pop("skipped")

        ended = d.pop("ended")

        def _parse_checked_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                checked_at_type_0 = datetime.datetime.fromisoformat(data)

                return checked_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        checked_at = _parse_checked_at(d.pop("checked_at"))

        failure = d.pop("failure")

        mirror_shard_out = cls(
            stream=stream,
            shard=shard,
            next_offset=next_offset,
            tip=tip,
            lag_records=lag_records,
            lag_seconds=lag_seconds,
            copied=copied,
            skipped=skipped,
            ended=ended,
            checked_at=checked_at,
            failure=failure,
        )

        mirror_shard_out.additional_properties = d
        return mirror_shard_out

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
