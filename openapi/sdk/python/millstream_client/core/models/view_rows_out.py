from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.view_as_of import ViewAsOf
    from ..models.view_rows_out_rows_item import ViewRowsOutRowsItem


T = TypeVar("T", bound="ViewRowsOut")


@_attrs_define
class ViewRowsOut:
    """Rows in the order of their keys; each is an object with the columns of the view.

    Attributes:
        rows (list[ViewRowsOutRowsItem]):
        as_of (ViewAsOf): Revision and progress that rows belong to.
        next_cursor (None | str): Null on the last page.
    """

    rows: list[ViewRowsOutRowsItem]
    as_of: ViewAsOf
    next_cursor: None | str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        rows = []
        for rows_item_data in self.rows:
            rows_item = rows_item_data.to_dict()
            rows.append(rows_item)

        as_of = self.as_of.to_dict()

        next_cursor: None | str
        next_cursor = self.next_cursor

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "rows": rows,
                "as_of": as_of,
                "next_cursor": next_cursor,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.view_as_of import ViewAsOf  # noqa: PLC0415
        from ..models.view_rows_out_rows_item import ViewRowsOutRowsItem  # noqa: PLC0415

        d = dict(src_dict)
        rows = []
        _rows = d.pop("rows")
        for rows_item_data in _rows:
            rows_item = ViewRowsOutRowsItem.from_dict(rows_item_data)

            rows.append(rows_item)

        as_of = ViewAsOf.from_dict(d.pop("as_of"))

        def _parse_next_cursor(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        next_cursor = _parse_next_cursor(d.pop("next_cursor"))

        view_rows_out = cls(
            rows=rows,
            as_of=as_of,
            next_cursor=next_cursor,
        )

        view_rows_out.additional_properties = d
        return view_rows_out

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
