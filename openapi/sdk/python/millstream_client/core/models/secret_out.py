from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="SecretOut")


@_attrs_define
class SecretOut:
    """A new signing secret. It is not returned again.

    Attributes:
        secret (str):
        created_at (datetime.datetime):
        old_secret_expires_at (datetime.datetime | None):
        in_force (bool): No request is sent by the former configuration any more. False: a deliverer did not confirm
            that in time; it will within seconds.
    """

    secret: str
    created_at: datetime.datetime
    old_secret_expires_at: datetime.datetime | None
    in_force: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        secret = self.secret

        created_at = self.created_at.isoformat()

        old_secret_expires_at: None | str
        if isinstance(self.old_secret_expires_at, datetime.datetime):
            old_secret_expires_at = self.old_secret_expires_at.isoformat()
        else:
            old_secret_expires_at = self.old_secret_expires_at

        in_force = self.in_force

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "secret": secret,
                "created_at": created_at,
                "old_secret_expires_at": old_secret_expires_at,
                "in_force": in_force,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        secret = d.pop("secret")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_old_secret_expires_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                old_secret_expires_at_type_0 = datetime.datetime.fromisoformat(data)

                return old_secret_expires_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        old_secret_expires_at = _parse_old_secret_expires_at(d.pop("old_secret_expires_at"))

        in_force = d.pop("in_force")

        secret_out = cls(
            secret=secret,
            created_at=created_at,
            old_secret_expires_at=old_secret_expires_at,
            in_force=in_force,
        )

        secret_out.additional_properties = d
        return secret_out

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
