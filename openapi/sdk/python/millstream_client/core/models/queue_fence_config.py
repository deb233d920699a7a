from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="QueueFenceConfig")


@_attrs_define
class QueueFenceConfig:
    """The fencing token of a queue; empty for none.

    `expected`: apply only if this is the current token.

        Attributes:
            token (str):
            expected (None | str | Unset):
    """

    token: str
    expected: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        token = self.token

        expected: None | str | Unset
        if isinstance(self.expected, Unset):
            expected = UNSET
        else:
            expected = self.expected

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "token": token,
            }
        )
        if expected is not UNSET:
            field_dict["expected"] = expected

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        token = d.pop("token")

        def _parse_expected(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        expected = _parse_expected(d.pop("expected", UNSET))

        queue_fence_config = cls(
            token=token,
            expected=expected,
        )

        return queue_fence_config
