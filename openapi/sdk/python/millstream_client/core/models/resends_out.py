from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ResendsOut")


@_attrs_define
class ResendsOut:
    """Result of a bulk resend. Deliveries whose payload is gone are skipped.

    Attributes:
        matched (int | None): In a dry run: number of deliveries, at most 100000.
        delivered (int):
        failed (int):
        skipped (int):
        next_cursor (None | str): Continue here; null if no more deliveries match.
    """

    matched: int | None
    delivered: int
    failed: int
    skipped: int
    next_cursor: None | str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        matched: int | None
        matched = self.matched

        delivered = self.delivered

        failed = self.failed

        skipped = self.skipped

        next_cursor: None | str
        next_cursor = self.next_cursor

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "matched": matched,
                "delivered": delivered,
                "failed": failed,
                "skipped": skipped,
                "next_cursor": next_cursor,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_matched(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        matched = _parse_matched(d.pop("matched"))

        delivered = d.pop("delivered")

        failed = d.pop("failed")

        skipped = d.pop("skipped")

        def _parse_next_cursor(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        next_cursor = _parse_next_cursor(d.pop("next_cursor"))

        resends_out = cls(
            matched=matched,
            delivered=delivered,
            failed=failed,
            skipped=skipped,
            next_cursor=next_cursor,
        )

        resends_out.additional_properties = d
        return resends_out

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
