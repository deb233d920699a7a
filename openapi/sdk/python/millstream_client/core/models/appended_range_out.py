from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.item_error import ItemError


T = TypeVar("T", bound="AppendedRangeOut")


@_attrs_define
class AppendedRangeOut:
    """The offsets of consecutive records, starting at `offset`, or the error for them.

    `records` are their indexes in the call; if omitted, the range covers all records of the call.

        Attributes:
            shard (int | Unset):
            offset (int | Unset):
            duplicate (bool | Unset):  Default: False.
            error (ItemError | Unset): Reason why one item of a batch was refused.
            records (list[int] | Unset):
    """

    shard: int | Unset = UNSET
    offset: int | Unset = UNSET
    duplicate: bool | Unset = False
    error: ItemError | Unset = UNSET
    records: list[int] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        shard = self.shard

        offset = self.offset

        duplicate = self.duplicate

        error: dict[str, Any] | Unset = UNSET
        if not isinstance(self.error, Unset):
            error = self.error.to_dict()

        records: list[int] | Unset = UNSET
        if not isinstance(self.records, Unset):
            records = self.records

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update({})
        if shard is not UNSET:
            field_dict["shard"] = shard
        if offset is not UNSET:
            field_dict["offset"] = offset
        if duplicate is not UNSET:
            field_dict["duplicate"] = duplicate
        if error is not UNSET:
            field_dict["error"] = error
        if records is not UNSET:
            field_dict["records"] = records

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.item_error import ItemError  # noqa: PLC0415

        d = dict(src_dict)
        shard = d.pop("shard", UNSET)

        offset = d.pop("offset", UNSET)

        duplicate = d.pop("duplicate", UNSET)

        _error = d.pop("error", UNSET)
        error: ItemError | Unset
        if isinstance(_error, Unset):
            error = UNSET
        else:
            error = ItemError.from_dict(_error)

        records = cast(list[int], d.pop("records", UNSET))

        appended_range_out = cls(
            shard=shard,
            offset=offset,
            duplicate=duplicate,
            error=error,
            records=records,
        )

        appended_range_out.additional_properties = d
        return appended_range_out

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
