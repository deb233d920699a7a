from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.change_kind import ChangeKind

if TYPE_CHECKING:
    from ..models.view_back_test_message_before import ViewBackTestMessageBefore
    from ..models.view_back_test_message_row import ViewBackTestMessageRow


T = TypeVar("T", bound="ViewBackTestMessage")


@_attrs_define
class ViewBackTestMessage:
    """Message that a sink would have got: a change of a row, with the row's key.

    Attributes:
        change (ChangeKind): Kind of a change. final: a row of an ended window; correction: a later change of it.
        key (str):
        row (None | ViewBackTestMessageRow):
        before (None | ViewBackTestMessageBefore):
    """

    change: ChangeKind
    key: str
    row: None | ViewBackTestMessageRow
    before: None | ViewBackTestMessageBefore
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.view_back_test_message_before import ViewBackTestMessageBefore  # noqa: PLC0415
        from ..models.view_back_test_message_row import ViewBackTestMessageRow  # noqa: PLC0415

        change = self.change.value

        key = self.key

        row: dict[str, Any] | None
        if isinstance(self.row, ViewBackTestMessageRow):
            row = self.row.to_dict()
        else:
            row = self.row

        before: dict[str, Any] | None
        if isinstance(self.before, ViewBackTestMessageBefore):
            before = self.before.to_dict()
        else:
            before = self.before

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "change": change,
                "key": key,
                "row": row,
                "before": before,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.view_back_test_message_before import ViewBackTestMessageBefore  # noqa: PLC0415
        from ..models.view_back_test_message_row import ViewBackTestMessageRow  # noqa: PLC0415

        d = dict(src_dict)
        change = ChangeKind(d.pop("change"))

        key = d.pop("key")

        def _parse_row(data: object) -> None | ViewBackTestMessageRow:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                row_type_0 = ViewBackTestMessageRow.from_dict(data)

                return row_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ViewBackTestMessageRow, data)

        row = _parse_row(d.pop("row"))

        def _parse_before(data: object) -> None | ViewBackTestMessageBefore:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                before_type_0 = ViewBackTestMessageBefore.from_dict(data)

                return before_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ViewBackTestMessageBefore, data)

        before = _parse_before(d.pop("before"))

        view_back_test_message = cls(
            change=change,
            key=key,
            row=row,
            before=before,
        )

        view_back_test_message.additional_properties = d
        return view_back_test_message

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
