from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.item_error import ItemError


T = TypeVar("T", bound="CommittedOut")


@_attrs_define
class CommittedOut:
    """The group's offset in a shard, or the error for the shard.

    Attributes:
        shard (int):
        offset (int | Unset):
        error (ItemError | Unset): Reason why one item of a batch was refused.
    """

    shard: int
    offset: int | Unset = UNSET
    error: ItemError | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        shard = self.shard

        offset = self.offset

        error: dict[str, Any] | Unset = UNSET
        if not isinstance(self.error, Unset):
            error = self.error.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "shard": shard,
            }
        )
        if offset is not UNSET:
            field_dict["offset"] = offset
        if error is not UNSET:
            field_dict["error"] = error

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.item_error import ItemError  # noqa: PLC0415

        d = dict(src_dict)
        shard = d.pop("shard")

        offset = d.pop("offset", UNSET)

        _error = d.pop("error", UNSET)
        error: ItemError | Unset
        if isinstance(_error, Unset):
            error = UNSET
        else:
            error = ItemError.from_dict(_error)

        committed_out = cls(
            shard=shard,
            offset=offset,
            error=error,
        )

        committed_out.additional_properties = d
        return committed_out

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
