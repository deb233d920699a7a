from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.role import Role
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.grant_config import GrantConfig
    from ..models.key_rates import KeyRates


T = TypeVar("T", bound="KeyPatch")


@_attrs_define
class KeyPatch:
    """Changes to a credential's permissions (a JSON Merge Patch); null removes a field.

    Attributes:
        roles (list[Role] | None | Unset):
        grants (list[GrantConfig] | None | Unset):
        rates (KeyRates | None | Unset):
        expires_at (datetime.datetime | None | Unset): Expiry; null: valid until revoked.
    """

    roles: list[Role] | None | Unset = UNSET
    grants: list[GrantConfig] | None | Unset = UNSET
    rates: KeyRates | None | Unset = UNSET
    expires_at: datetime.datetime | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.key_rates import KeyRates  # noqa: PLC0415

        roles: list[str] | None | Unset
        if isinstance(self.roles, Unset):
            roles = UNSET
        elif isinstance(self.roles, list):
            roles = []
            for roles_type_0_item_data in self.roles:
                roles_type_0_item = roles_type_0_item_data.value
                roles.append(roles_type_0_item)

        else:
            roles = self.roles

        grants: list[dict[str, Any]] | None | Unset
        if isinstance(self.grants, Unset):
            grants = UNSET
        elif isinstance(self.grants, list):
            grants = []
            for grants_type_0_item_data in self.grants:
                grants_type_0_item = grants_type_0_item_data.to_dict()
                grants.append(grants_type_0_item)

        else:
            grants = self.grants

        rates: dict[str, Any] | None | Unset
        if isinstance(self.rates, Unset):
            rates = UNSET
        elif isinstance(self.rates, KeyRates):
            rates = self.rates.to_dict()
        else:
            rates = self.rates

        expires_at: None | str | Unset
        if isinstance(self.expires_at, Unset):
            expires_at = UNSET
        elif isinstance(self.expires_at, datetime.datetime):
            expires_at = self.expires_at.isoformat()
        else:
            expires_at = self.expires_at

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if roles is not UNSET:
            field_dict["roles"] = roles
        if grants is not UNSET:
            field_dict["grants"] = grants
        if rates is not UNSET:
            field_dict["rates"] = rates
        if expires_at is not UNSET:
            field_dict["expires_at"] = expires_at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.grant_config import GrantConfig  # noqa: PLC0415
        from ..models.key_rates import KeyRates  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_roles(data: object) -> list[Role] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                roles_type_0 = []
                _roles_type_0 = data
                for roles_type_0_item_data in _roles_type_0:
                    roles_type_0_item = Role(roles_type_0_item_data)

                    roles_type_0.append(roles_type_0_item)

                return roles_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[Role] | None | Unset, data)

        roles = _parse_roles(d.pop("roles", UNSET))

        def _parse_grants(data: object) -> list[GrantConfig] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                grants_type_0 = []
                _grants_type_0 = data
                for grants_type_0_item_data in _grants_type_0:
                    grants_type_0_item = GrantConfig.from_dict(grants_type_0_item_data)

                    grants_type_0.append(grants_type_0_item)

                return grants_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[GrantConfig] | None | Unset, data)

        grants = _parse_grants(d.pop("grants", UNSET))

        def _parse_rates(data: object) -> KeyRates | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                rates_type_0 = KeyRates.from_dict(data)

                return rates_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(KeyRates | None | Unset, data)

        rates = _parse_rates(d.pop("rates", UNSET))

        def _parse_expires_at(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                expires_at_type_0 = datetime.datetime.fromisoformat(data)

                return expires_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        expires_at = _parse_expires_at(d.pop("expires_at", UNSET))

        key_patch = cls(
            roles=roles,
            grants=grants,
            rates=rates,
            expires_at=expires_at,
        )

        return key_patch
