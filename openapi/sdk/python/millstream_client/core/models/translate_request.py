from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.translate_request_system import TranslateRequestSystem

T = TypeVar("T", bound="TranslateRequest")


@_attrs_define
class TranslateRequest:
    """A condition of another system.

    Attributes:
        system (TranslateRequestSystem):
        condition (Any): The text of the condition. For `rabbitmq` a binding: `exchange_type`, `routing_key` and
            `arguments`. For `service_bus` also a correlation filter, as an object.
    """

    system: TranslateRequestSystem
    condition: Any

    def to_dict(self) -> dict[str, Any]:
        system = self.system.value

        condition = self.condition

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "system": system,
                "condition": condition,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        system = TranslateRequestSystem(d.pop("system"))

        condition = d.pop("condition")

        translate_request = cls(
            system=system,
            condition=condition,
        )

        return translate_request
