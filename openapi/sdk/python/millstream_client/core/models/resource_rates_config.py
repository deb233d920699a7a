from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.rates_config import RatesConfig


T = TypeVar("T", bound="ResourceRatesConfig")


@_attrs_define
class ResourceRatesConfig:
    """Rate limits for each resource that matches a glob, counted per resource.

    Attributes:
        resources (str): `queue/`, `stream/` or `group/` and a name with wildcards (`*` any characters, `?` one
            character): `queue/orders-*`.
        rates (RatesConfig): Rate limits per second. Messages and bytes count sends and appends.
    """

    resources: str
    rates: RatesConfig

    def to_dict(self) -> dict[str, Any]:
        resources = self.resources

        rates = self.rates.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "resources": resources,
                "rates": rates,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.rates_config import RatesConfig  # noqa: PLC0415

        d = dict(src_dict)
        resources = d.pop("resources")

        rates = RatesConfig.from_dict(d.pop("rates"))

        resource_rates_config = cls(
            resources=resources,
            rates=rates,
        )

        return resource_rates_config
