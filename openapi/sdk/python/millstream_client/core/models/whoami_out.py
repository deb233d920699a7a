from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.grant_config import GrantConfig
    from ..models.key_rates import KeyRates


T = TypeVar("T", bound="WhoamiOut")


@_attrs_define
class WhoamiOut:
    """The caller's identity, and its permissions in the namespace.

    `credential` is null if no stored credential is involved.

        Attributes:
            name (str):
            namespace (str):
            all_namespaces (bool):
            credential (None | str):
            grants (list[GrantConfig]):
            rates (KeyRates | None):
            expires_at (datetime.datetime | None):
            everywhere (bool | Unset): Former name of `all_namespaces`, which replaces it.
    """

    name: str
    namespace: str
    all_namespaces: bool
    credential: None | str
    grants: list[GrantConfig]
    rates: KeyRates | None
    expires_at: datetime.datetime | None
    everywhere: bool | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.key_rates import KeyRates  # noqa: PLC0415

        name = self.name

        namespace = self.namespace

        all_namespaces = self.all_namespaces

        credential: None | str
        credential = self.credential

        grants = []
        for grants_item_data in self.grants:
            grants_item = grants_item_data.to_dict()
            grants.append(grants_item)

        rates: dict[str, Any] | None
        if isinstance(self.rates, KeyRates):
            rates = self.rates.to_dict()
        else:
            rates = self.rates

        expires_at: None | str
        if isinstance(self.expires_at, datetime.datetime):
            expires_at = self.expires_at.isoformat()
        else:
            expires_at = self.expires_at

        everywhere = self.everywhere

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "namespace": namespace,
                "all_namespaces": all_namespaces,
                "credential": credential,
                "grants": grants,
                "rates": rates,
                "expires_at": expires_at,
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
        name = d.pop("name")

        namespace = d.pop("namespace")

        all_namespaces = d.pop("all_namespaces")

        def _parse_credential(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        credential = _parse_credential(d.pop("credential"))

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

        everywhere = d.pop("everywhere", UNSET)

        whoami_out = cls(
            name=name,
            namespace=namespace,
            all_namespaces=all_namespaces,
            credential=credential,
            grants=grants,
            rates=rates,
            expires_at=expires_at,
            everywhere=everywhere,
        )

        whoami_out.additional_properties = d
        return whoami_out

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
