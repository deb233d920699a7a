from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.key_kind import KeyKind
from ..models.role import Role
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.grant_config import GrantConfig
    from ..models.key_rates import KeyRates


T = TypeVar("T", bound="KeyOut")


@_attrs_define
class KeyOut:
    """A credential without its secret.

    `version` is its ETag; `family` is the first of its rotations. `last_used_at` can lag by up to one minute.

        Attributes:
            id (str):
            kind (KeyKind): Type of a credential.

                `key`: an API key that is sent with every call. `access_key`: an access key pair that signs calls, as AWS
                clients
                do. `pair`: former name of `access_key`; responses of this release still have it. `token`: from an external
                issuer,
                never stored.
            name (str):
            namespace (str):
            all_namespaces (bool):
            roles (list[Role]):
            grants (list[GrantConfig]):
            rates (KeyRates | None):
            family (str):
            version (int):
            created_by (str):
            created_at (datetime.datetime):
            changed_at (datetime.datetime):
            expires_at (datetime.datetime | None):
            last_used_at (datetime.datetime | None):
            revoked_at (datetime.datetime | None):
            everywhere (bool | Unset): Former name of `all_namespaces`, which replaces it.
    """

    id: str
    kind: KeyKind
    name: str
    namespace: str
    all_namespaces: bool
    roles: list[Role]
    grants: list[GrantConfig]
    rates: KeyRates | None
    family: str
    version: int
    created_by: str
    created_at: datetime.datetime
    changed_at: datetime.datetime
    expires_at: datetime.datetime | None
    last_used_at: datetime.datetime | None
    revoked_at: datetime.datetime | None
    everywhere: bool | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.key_rates import KeyRates  # noqa: PLC0415

        id = self.id

        kind = self.kind.value

        name = self.name

        namespace = self.namespace

        all_namespaces = self.all_namespaces

        roles = []
        for roles_item_data in self.roles:
            roles_item = roles_item_data.value
            roles.append(roles_item)

        grants = []
        for grants_item_data in self.grants:
            grants_item = grants_item_data.to_dict()
            grants.append(grants_item)

        rates: dict[str, Any] | None
        if isinstance(self.rates, KeyRates):
            rates = self.rates.to_dict()
        else:
            rates = self.rates

        family = self.family

        version = self.version

        created_by = self.created_by

        created_at = self.created_at.isoformat()

        changed_at = self.changed_at.isoformat()

        expires_at: None | str
        if isinstance(self.expires_at, datetime.datetime):
            expires_at = self.expires_at.isoformat()
        else:
            expires_at = self.expires_at

        last_used_at: None | str
        if isinstance(self.last_used_at, datetime.datetime):
            last_used_at = self.last_used_at.isoformat()
        else:
            last_used_at = self.last_used_at

        revoked_at: None | str
        if isinstance(self.revoked_at, datetime.datetime):
            revoked_at = self.revoked_at.isoformat()
        else:
            revoked_at = self.revoked_at

        everywhere = self.everywhere

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "kind": kind,
                "name": name,
                "namespace": namespace,
                "all_namespaces": all_namespaces,
                "roles": roles,
                "grants": grants,
                "rates": rates,
                "family": family,
                "version": version,
                "created_by": created_by,
                "created_at": created_at,
                "changed_at": changed_at,
                "expires_at": expires_at,
                "last_used_at": last_used_at,
                "revoked_at": revoked_at,
            }
        )
        if everywhere is not UNSET:
            field_dict["everywhere"] = everywhere

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.grant_config import GrantConfig  # noqa: PLC0415
        from ..models.key_rates import KeyRates  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        kind = KeyKind(d.pop("kind"))

        name = d.pop("name")

        namespace = d.pop("namespace")

        all_namespaces = d.pop("all_namespaces")

        roles = []
        _roles = d.pop("roles")
        for roles_item_data in _roles:
            roles_item = Role(roles_item_data)

            roles.append(roles_item)

        grants = []
        _grants = d.pop("grants")
        for grants_item_data in _grants:
            grants_item = GrantConfig.from_dict(grants_item_data)

            grants.append(grants_item)

        def _parse_rates(data: object) -> KeyRates | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                rates_type_0 = KeyRates.from_dict(data)

                return rates_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(KeyRates | None, data)

        rates = _parse_rates(d.pop("rates"))

        family = d.pop("family")

        version = d.pop("version")

        created_by = d.pop("created_by")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        changed_at = datetime.datetime.fromisoformat(d.pop("changed_at"))

        def _parse_expires_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                expires_at_type_0 = datetime.datetime.fromisoformat(data)

                return expires_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        expires_at = _parse_expires_at(d.pop("expires_at"))

        def _parse_last_used_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                last_used_at_type_0 = datetime.datetime.fromisoformat(data)

                return last_used_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        last_used_at = _parse_last_used_at(d.pop("last_used_at"))

        def _parse_revoked_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                revoked_at_type_0 = datetime.datetime.fromisoformat(data)

                return revoked_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        revoked_at = _parse_revoked_at(d.pop("revoked_at"))

        everywhere = d.pop("everywhere", UNSET)

        key_out = cls(
            id=id,
            kind=kind,
            name=name,
            namespace=namespace,
            all_namespaces=all_namespaces,
            roles=roles,
            grants=grants,
            rates=rates,
            family=family,
            version=version,
            created_by=created_by,
            created_at=created_at,
            changed_at=changed_at,
            expires_at=expires_at,
            last_used_at=last_used_at,
            revoked_at=revoked_at,
            everywhere=everywhere,
        )

        key_out.additional_properties = d
        return key_out

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
