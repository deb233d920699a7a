from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.key_kind import KeyKind
from ..models.role import Role
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.grant_config import GrantConfig
    from ..models.key_rates import KeyRates


T = TypeVar("T", bound="KeyConfig")


@_attrs_define
class KeyConfig:
    """A credential to create.

    Attributes:
        name (str): Name of the principal. Several keys can have the same name.
        roles (list[Role] | Unset):
        grants (list[GrantConfig] | Unset):
        rates (KeyRates | None | Unset):
        expires_at (datetime.datetime | None | Unset): Expiry; null: valid until revoked.
        kind (KeyKind | Unset): Type of a credential.

            `key`: an API key that is sent with every call. `access_key`: an access key pair that signs calls, as AWS
            clients
            do. `pair`: former name of `access_key`; responses of this release still have it. `token`: from an external
            issuer,
            never stored.
        all_namespaces (bool | Unset): Grants access to all namespaces. Only an administrator of all namespaces can set
            it. Default: False.
        everywhere (bool | Unset): Former name of `all_namespaces`, which replaces it. Default: False.
    """

    name: str
    roles: list[Role] | Unset = UNSET
    grants: list[GrantConfig] | Unset = UNSET
    rates: KeyRates | None | Unset = UNSET
    expires_at: datetime.datetime | None | Unset = UNSET
    kind: KeyKind | Unset = UNSET
    all_namespaces: bool | Unset = False
    everywhere: bool | Unset = False

    def to_dict(self) -> dict[str, Any]:
        from ..models.key_rates import KeyRates  # noqa: PLC0415

        name = self.name

        roles: list[str] | Unset = UNSET
        if not isinstance(self.roles, Unset):
            roles = []
            for roles_item_data in self.roles:
                roles_item = roles_item_data.value
                roles.append(roles_item)

        grants: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.grants, Unset):
            grants = []
            for grants_item_data in self.grants:
                grants_item = grants_item_data.to_dict()
                grants.append(grants_item)

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

        kind: str | Unset = UNSET
        if not isinstance(self.kind, Unset):
            kind = self.kind.value

        all_namespaces = self.all_namespaces

        everywhere = self.everywhere

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
            }
        )
        if roles is not UNSET:
            field_dict["roles"] = roles
        if grants is not UNSET:
            field_dict["grants"] = grants
        if rates is not UNSET:
            field_dict["rates"] = rates
        if expires_at is not UNSET:
            field_dict["expires_at"] = expires_at
        if kind is not UNSET:
            field_dict["kind"] = kind
        if all_namespaces is not UNSET:
            field_dict["all_namespaces"] = all_namespaces
        if everywhere is not UNSET:
            field_dict["everywhere"] = everywhere

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.grant_config import GrantConfig  # noqa: PLC0415
        from ..models.key_rates import KeyRates  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        _roles = d.pop("roles", UNSET)
        roles: list[Role] | Unset = UNSET
        if _roles is not UNSET:
            roles = []
            for roles_item_data in _roles:
                roles_item = Role(roles_item_data)

                roles.append(roles_item)

        _grants = d.pop("grants", UNSET)
        grants: list[GrantConfig] | Unset = UNSET
        if _grants is not UNSET:
            grants = []
            for grants_item_data in _grants:
                grants_item = GrantConfig.from_dict(grants_item_data)

                grants.append(grants_item)

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

        _kind = d.pop("kind", UNSET)
        kind: KeyKind | Unset
        if isinstance(_kind, Unset):
            kind = UNSET
        else:
            kind = KeyKind(_kind)

        all_namespaces = d.pop("all_namespaces", UNSET)

        everywhere = d.pop("everywhere", UNSET)

        key_config = cls(
            name=name,
            roles=roles,
            grants=grants,
            rates=rates,
            expires_at=expires_at,
            kind=kind,
            all_namespaces=all_namespaces,
            everywhere=everywhere,
        )

        return key_config
