from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.header_transform_config_set import HeaderTransformConfigSet


T = TypeVar("T", bound="HeaderTransformConfig")


@_attrs_define
class HeaderTransformConfig:
    """Headers to remove, and then headers to set.

    Attributes:
        set_ (HeaderTransformConfigSet | Unset):
        remove (list[str] | Unset):
    """

    set_: HeaderTransformConfigSet | Unset = UNSET
    remove: list[str] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        set_: dict[str, Any] | Unset = UNSET
        if not isinstance(self.set_, Unset):
            set_ = self.set_.to_dict()

        remove: list[str] | Unset = UNSET
        if not isinstance(self.remove, Unset):
            remove = self.remove

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if set_ is not UNSET:
            field_dict["set"] = set_
        if remove is not UNSET:
            field_dict["remove"] = remove

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.header_transform_config_set import HeaderTransformConfigSet  # noqa: PLC0415

        d = dict(src_dict)
        _set_ = d.pop("set", UNSET)
        set_: HeaderTransformConfigSet | Unset
        if isinstance(_set_, Unset):
            set_ = UNSET
        else:
            set_ = HeaderTransformConfigSet.from_dict(_set_)

        remove = cast(list[str], d.pop("remove", UNSET))

        header_transform_config = cls(
            set_=set_,
            remove=remove,
        )

        return header_transform_config
