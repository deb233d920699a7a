from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.view_as_table_out import ViewAsTableOut
    from ..models.view_input_out import ViewInputOut
    from ..models.view_table_out import ViewTableOut


T = TypeVar("T", bound="ViewDetailFrom")


@_attrs_define
class ViewDetailFrom:
    additional_properties: dict[str, ViewAsTableOut | ViewInputOut | ViewTableOut] = _attrs_field(
        init=False, factory=dict
    )

    def to_dict(self) -> dict[str, Any]:
        from ..models.view_input_out import ViewInputOut  # noqa: PLC0415
        from ..models.view_table_out import ViewTableOut  # noqa: PLC0415

        field_dict: dict[str, Any] = {}
        for prop_name, prop in self.additional_properties.items():
            if isinstance(prop, ViewInputOut):
                field_dict[prop_name] = prop.to_dict()
            elif isinstance(prop, ViewTableOut):
                field_dict[prop_name] = prop.to_dict()
            else:
                field_dict[prop_name] = prop.to_dict()

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.view_as_table_out import ViewAsTableOut  # noqa: PLC0415
        from ..models.view_input_out import ViewInputOut  # noqa: PLC0415
        from ..models.view_table_out import ViewTableOut  # noqa: PLC0415

        d = dict(src_dict)
        view_detail_from = cls()

        additional_properties = {}
        for prop_name, prop_dict in d.items():

            def _parse_additional_property(
                data: object,
            ) -> ViewAsTableOut | ViewInputOut | ViewTableOut:
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    additional_property_type_0 = ViewInputOut.from_dict(data)

                    return additional_property_type_0
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                try:
                    if not isinstance(data, dict):
                        raise TypeError()
                    additional_property_type_1 = ViewTableOut.from_dict(data)

                    return additional_property_type_1
                except (TypeError, ValueError, AttributeError, KeyError):
                    pass
                if not isinstance(data, dict):
                    raise TypeError()
                additional_property_type_2 = ViewAsTableOut.from_dict(data)

                return additional_property_type_2

            additional_property = _parse_additional_property(prop_dict)

            additional_properties[prop_name] = additional_property

        view_detail_from.additional_properties = additional_properties
        return view_detail_from

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> ViewAsTableOut | ViewInputOut | ViewTableOut:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: ViewAsTableOut | ViewInputOut | ViewTableOut) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
