from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.settlement_in import SettlementIn


T = TypeVar("T", bound="Settle")


@_attrs_define
class Settle:
    """Settlements of deliveries of one queue, each with its own result.

    Attributes:
        settlements (list[SettlementIn]):
    """

    settlements: list[SettlementIn]

    def to_dict(self) -> dict[str, Any]:
        settlements = []
        for settlements_item_data in self.settlements:
            settlements_item = settlements_item_data.to_dict()
            settlements.append(settlements_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "settlements": settlements,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.settlement_in import SettlementIn  # noqa: PLC0415

        d = dict(src_dict)
        settlements = []
        _settlements = d.pop("settlements")
        for settlements_item_data in _settlements:
            settlements_item = SettlementIn.from_dict(settlements_item_data)

            settlements.append(settlements_item)

        settle = cls(
            settlements=settlements,
        )

        return settle
