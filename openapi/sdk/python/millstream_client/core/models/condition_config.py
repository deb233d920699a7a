from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ConditionConfig")


@_attrs_define
class ConditionConfig:
    """A condition on a member of a JSON body: exactly one of `equal_to` and `exists`.

    Attributes:
        path (str): A JSON Pointer, such as /user/id.
        equal_to (Any | Unset): Any JSON value. `equals`, its former name, is accepted too.
        exists (bool | None | Unset):
    """

    path: str
    equal_to: Any | Unset = UNSET
    exists: bool | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        path = self.path

        equal_to = self.equal_to

        exists: bool | None | Unset
        if isinstance(self.exists, Unset):
            exists = UNSET
        else:
            exists = self.exists

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "path": path,
            }
        )
        if equal_to is not UNSET:
            field_dict["equal_to"] = equal_to
        if exists is not UNSET:
            field_dict["exists"] = exists

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        path = d.pop("path")

        equal_to = d.pop("equal_to", UNSET)

        def _parse_exists(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        exists = _parse_exists(d.pop("exists", UNSET))

        condition_config = cls(
            path=path,
            equal_to=equal_to,
            exists=exists,
        )

        return condition_config
