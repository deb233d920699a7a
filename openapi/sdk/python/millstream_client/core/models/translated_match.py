from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.translated_match_match import TranslatedMatchMatch


T = TypeVar("T", bound="TranslatedMatch")


@_attrs_define
class TranslatedMatch:
    """A match that takes the same messages, and what differs.

    Attributes:
        match (TranslatedMatchMatch):
        notes (list[str]): Differences from the system, if any.
    """

    match: TranslatedMatchMatch
    notes: list[str]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        match = self.match.to_dict()

        notes = self.notes

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "match": match,
                "notes": notes,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.translated_match_match import TranslatedMatchMatch  # noqa: PLC0415

        d = dict(src_dict)
        match = TranslatedMatchMatch.from_dict(d.pop("match"))

        notes = cast(list[str], d.pop("notes"))

        translated_match = cls(
            match=match,
            notes=notes,
        )

        translated_match.additional_properties = d
        return translated_match

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
