from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.view_progress_out_tables_additional_property import (
        ViewProgressOutTablesAdditionalProperty,
    )


T = TypeVar("T", bound="ViewProgressOutTables")


@_attrs_define
class ViewProgressOutTables:
    """Positions of the tables that the last batch was joined with, by name: of a stream by shard; of a view, its batch by
    the number of its revision.

    """

    additional_properties: dict[str, ViewProgressOutTablesAdditionalProperty] = _attrs_field(
        init=False, factory=dict
    )

    def to_dict(self) -> dict[str, Any]:

        field_dict: dict[str, Any] = {}
        for prop_name, prop in self.additional_properties.items():
            field_dict[prop_name] = prop.to_dict()

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.view_progress_out_tables_additional_property import (
            ViewProgressOutTablesAdditionalProperty,  # noqa: PLC0415
        )

        d = dict(src_dict)
        view_progress_out_tables = cls()

        additional_properties = {}
        for prop_name, prop_dict in d.items():
            additional_property = ViewProgressOutTablesAdditionalProperty.from_dict(prop_dict)

            additional_properties[prop_name] = additional_property

        view_progress_out_tables.additional_properties = additional_properties
        return view_progress_out_tables

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> ViewProgressOutTablesAdditionalProperty:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: ViewProgressOutTablesAdditionalProperty) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
