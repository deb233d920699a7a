from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ShardOut")


@_attrs_define
class ShardOut:
    """A shard: its hash-key range (decimal, inclusive), its lineage, and its extent.

    Attributes:
        index (int):
        open_ (bool): Whether the shard accepts records; a closed shard can still be read.
        parents (list[int]): Parent shards.
        opened_at (datetime.datetime):
        closed_at (datetime.datetime | None):
        first_hash_key (str):
        last_hash_key (str):
        start (int): The oldest readable offset.
        next_ (int): The next offset to write.
        bytes_ (int):
        fenced (bool): Whether appends require the shard's fencing token.
    """

    index: int
    open_: bool
    parents: list[int]
    opened_at: datetime.datetime
    closed_at: datetime.datetime | None
    first_hash_key: str
    last_hash_key: str
    start: int
    next_: int
    bytes_: int
    fenced: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        index = self.index

        open_ = self.open_

        parents = self.parents

        opened_at = self.opened_at.isoformat()

        closed_at: None | str
        if isinstance(self.closed_at, datetime.datetime):
            closed_at = self.closed_at.isoformat()
        else:
            closed_at = self.closed_at

        first_hash_key = self.first_hash_key

        last_hash_key = self.last_hash_key

        start = self.start

        next_ = self.next_

        bytes_ = self.bytes_

        fenced = self.fenced

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "index": index,
                "open": open_,
                "parents": parents,
                "opened_at": opened_at,
                "closed_at": closed_at,
                "first_hash_key": first_hash_key,
                "last_hash_key": last_hash_key,
                "start": start,
                "next": next_,
                "bytes": bytes_,
                "fenced": fenced,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        index = d.pop("index")

        open_ = d.pop("open")

        parents = cast(list[int], d.pop("parents"))

        opened_at = datetime.datetime.fromisoformat(d.pop("opened_at"))

        def _parse_closed_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                closed_at_type_0 = datetime.datetime.fromisoformat(data)

                return closed_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        closed_at = _parse_closed_at(d.pop("closed_at"))

        first_hash_key = d.pop("first_hash_key")

        last_hash_key = d.pop("last_hash_key")

        start = d.pop("start")

        next_ = d.pop("next")

        bytes_ = d.pop("bytes")

        fenced = d.pop("fenced")

        shard_out = cls(
            index=index,
            open_=open_,
            parents=parents,
            opened_at=opened_at,
            closed_at=closed_at,
            first_hash_key=first_hash_key,
            last_hash_key=last_hash_key,
            start=start,
            next_=next_,
            bytes_=bytes_,
            fenced=fenced,
        )

        shard_out.additional_properties = d
        return shard_out

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
