from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.row_difference_out_after import RowDifferenceOutAfter
    from ..models.row_difference_out_before import RowDifferenceOutBefore


T = TypeVar("T", bound="RowDifferenceOut")


@_attrs_define
class RowDifferenceOut:
    """A row of a view and of another revision, such as a rebuild; null where there is none.

    Attributes:
        before (None | RowDifferenceOutBefore):
        after (None | RowDifferenceOutAfter):
    """

    before: None | RowDifferenceOutBefore
    after: None | RowDifferenceOutAfter
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.row_difference_out_after import RowDifferenceOutAfter  # noqa: PLC0415
        from ..models.row_difference_out_before import RowDifferenceOutBefore  # noqa: PLC0415

        before: dict[str, Any] | None
        if isinstance(self.before, RowDifferenceOutBefore):
            before = self.before.to_dict()
        else:
            before = self.before

        after: dict[str, Any] | None
        if isinstance(self.after, RowDifferenceOutAfter):
            after = self.after.to_dict()
        else:
            after = self.after

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "before": before,
                "after": after,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.row_difference_out_after import RowDifferenceOutAfter  # noqa: PLC0415
        from ..models.row_difference_out_before import RowDifferenceOutBefore  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_before(data: object) -> None | RowDifferenceOutBefore:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                before_type_0 = RowDifferenceOutBefore.from_dict(data)

                return before_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | RowDifferenceOutBefore, data)

        before = _parse_before(d.pop("before"))

        def _parse_after(data: object) -> None | RowDifferenceOutAfter:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                after_type_0 = RowDifferenceOutAfter.from_dict(data)

                return after_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | RowDifferenceOutAfter, data)

        after = _parse_after(d.pop("after"))

        row_difference_out = cls(
            before=before,
            after=after,
        )

        row_difference_out.additional_properties = d
        return row_difference_out

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
