from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="SourceFailureOut")


@_attrs_define
class SourceFailureOut:
    """A request that was rejected.

    `reason` is a stable code. Nothing of the body is kept.

        Attributes:
            at (datetime.datetime):
            reason (str):
            detail (str):
            body_bytes (int):
    """

    at: datetime.datetime
    reason: str
    detail: str
    body_bytes: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        at = self.at.isoformat()

        reason = self.reason

        detail = self.detail

        body_bytes = self.body_bytes

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "at": at,
                "reason": reason,
                "detail": detail,
                "body_bytes": body_bytes,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))

        reason = d.pop("reason")

        detail = d.pop("detail")

        body_bytes = d.pop("body_bytes")

        source_failure_out = cls(
            at=at,
            reason=reason,
            detail=detail,
            body_bytes=body_bytes,
        )

        source_failure_out.additional_properties = d
        return source_failure_out

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
