from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ReplayShardOut")


@_attrs_define
class ReplayShardOut:
    """Progress of a part: offsets of a shard from `first` to before `end`.

    `position` is the next offset.

        Attributes:
            read (int):
            selected (int):
            sent (int):
            duplicates (int):
            bytes_ (int):
            expired (int): Number of records that expired before they were read.
            shard (int):
            first (int):
            end (int):
            position (int):
            done (bool):
    """

    read: int
    selected: int
    sent: int
    duplicates: int
    bytes_: int
    expired: int
    shard: int
    first: int
    end: int
    position: int
    done: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        read = self.read

        selected = self.selected

        sent = self.sent

        duplicates = self.duplicates

        bytes_ = self.bytes_

        expired = self.expired

        shard = self.shard

        first = self.first

        end = self.end

        position = self.position

        done = self.done

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
                "shard": shard,
                "first": first,
                "end": end,
                "position": position,
                "done": done,
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

        shard = d.pop("shard")

        first = d.pop("first")

        end = d.pop("end")

        position = d.pop("position")

        done = d.pop("done")

        replay_shard_out = cls(
            read=read,
            selected=selected,
            sent=sent,
            duplicates=duplicates,
            bytes_=bytes_,
            expired=expired,
            shard=shard,
            first=first,
            end=end,
            position=position,
            done=done,
        )

        replay_shard_out.additional_properties = d
        return replay_shard_out

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
