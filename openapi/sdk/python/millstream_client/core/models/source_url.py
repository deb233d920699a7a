from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="SourceUrl")


@_attrs_define
class SourceUrl:
    """Path that receives the events of a source.

    Attributes:
        path (str): Path of the URL that the provider posts to, behind the address of this service. It is a credential:
            requests to it need no key, only the provider's signature.
        old_path_expires_at (datetime.datetime | None | Unset):
    """

    path: str
    old_path_expires_at: datetime.datetime | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        path = self.path

        old_path_expires_at: None | str | Unset
        if isinstance(self.old_path_expires_at, Unset):
            old_path_expires_at = UNSET
        elif isinstance(self.old_path_expires_at, datetime.datetime):
            old_path_expires_at = self.old_path_expires_at.isoformat()
        else:
            old_path_expires_at = self.old_path_expires_at

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "path": path,
            }
        )
        if old_path_expires_at is not UNSET:
            field_dict["old_path_expires_at"] = old_path_expires_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        path = d.pop("path")

        def _parse_old_path_expires_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                old_path_expires_at_type_0 = datetime.datetime.fromisoformat(data)

                return old_path_expires_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        old_path_expires_at = _parse_old_path_expires_at(d.pop("old_path_expires_at", UNSET))

        source_url = cls(
            path=path,
            old_path_expires_at=old_path_expires_at,
        )

        source_url.additional_properties = d
        return source_url

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
