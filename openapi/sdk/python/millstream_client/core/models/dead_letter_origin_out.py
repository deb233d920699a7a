from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="DeadLetterOriginOut")


@_attrs_define
class DeadLetterOriginOut:
    """The source that gave up on the message, why, and after how many failures.

    Attributes:
        source (str): `queue:<name>`, `group:<name>` or `route:<topic>/<route>`.
        reason (str):
        died_at (datetime.datetime):
        failures (int):
        crash_count (int):
        last_failure_reason (str | Unset): Reason of the last nack or reject there. Default: ''.
        details (str | Unset): Details of the last nack or reject: a stack trace, or the start of the response of a
            webhook's receiver. Default: ''.
        response (str | Unset): Former name of `details`, which replaces it. Default: ''.
    """

    source: str
    reason: str
    died_at: datetime.datetime
    failures: int
    crash_count: int
    last_failure_reason: str | Unset = ""
    details: str | Unset = ""
    response: str | Unset = ""
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        source = self.source

        reason = self.reason

        died_at = self.died_at.isoformat()

        failures = self.failures

        crash_count = self.crash_count

        last_failure_reason = self.last_failure_reason

        details = self.details

        response = self.response

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "source": source,
                "reason": reason,
                "died_at": died_at,
                "failures": failures,
                "crash_count": crash_count,
            }
        )
        if last_failure_reason is not UNSET:
            field_dict["last_failure_reason"] = last_failure_reason
        if details is not UNSET:
            field_dict["details"] = details
        if response is not UNSET:
            field_dict["response"] = response

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        source = d.pop("source")

        reason = d.pop("reason")

        died_at = datetime.datetime.fromisoformat(d.pop("died_at"))

        failures = d.pop("failures")

        crash_count = d.pop("crash_count")

        last_failure_reason = d.pop("last_failure_reason", UNSET)

        details = d.pop("details", UNSET)

        response = d.pop("response", UNSET)

        dead_letter_origin_out = cls(
            source=source,
            reason=reason,
            died_at=died_at,
            failures=failures,
            crash_count=crash_count,
            last_failure_reason=last_failure_reason,
            details=details,
            response=response,
        )

        dead_letter_origin_out.additional_properties = d
        return dead_letter_origin_out

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
