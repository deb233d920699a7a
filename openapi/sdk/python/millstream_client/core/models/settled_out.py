from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.item_error import ItemError


T = TypeVar("T", bound="SettledOut")


@_attrs_define
class SettledOut:
    """Result of one settlement: `ok`, or `error` with the reason.

    `visible_at` is set when the delivery was extended or will be available again later.

        Attributes:
            status (str):
            visible_at (datetime.datetime | Unset):
            error (ItemError | Unset): Reason why one item of a batch was refused.
            reply_error (ItemError | Unset): Reason why one item of a batch was refused.
    """

    status: str
    visible_at: datetime.datetime | Unset = UNSET
    error: ItemError | Unset = UNSET
    reply_error: ItemError | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        status = self.status

        visible_at: str | Unset = UNSET
        if not isinstance(self.visible_at, Unset):
            visible_at = self.visible_at.isoformat()

        error: dict[str, Any] | Unset = UNSET
        if not isinstance(self.error, Unset):
            error = self.error.to_dict()

        reply_error: dict[str, Any] | Unset = UNSET
        if not isinstance(self.reply_error, Unset):
            reply_error = self.reply_error.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "status": status,
            }
        )
        if visible_at is not UNSET:
            field_dict["visible_at"] = visible_at
        if error is not UNSET:
            field_dict["error"] = error
        if reply_error is not UNSET:
            field_dict["reply_error"] = reply_error

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.item_error import ItemError  # noqa: PLC0415

        d = dict(src_dict)
        status = d.pop("status")

        _visible_at = d.pop("visible_at", UNSET)
        visible_at: datetime.datetime | Unset
        if isinstance(_visible_at, Unset):
            visible_at = UNSET
        else:
            visible_at = datetime.datetime.fromisoformat(_visible_at)

        _error = d.pop("error", UNSET)
        error: ItemError | Unset
        if isinstance(_error, Unset):
            error = UNSET
        else:
            error = ItemError.from_dict(_error)

        _reply_error = d.pop("reply_error", UNSET)
        reply_error: ItemError | Unset
        if isinstance(_reply_error, Unset):
            reply_error = UNSET
        else:
            reply_error = ItemError.from_dict(_reply_error)

        settled_out = cls(
            status=status,
            visible_at=visible_at,
            error=error,
            reply_error=reply_error,
        )

        settled_out.additional_properties = d
        return settled_out

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
