from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="FailingObjectOut")


@_attrs_define
class FailingObjectOut:
    """An object that a process could not serve. It serves the others, and retries this one.

    Attributes:
        task (str): The task: `queues`, `archive`, `deliver` and so on.
        object_ (str): The object, as in `queues/default/orders`.
        reason (str): The last error.
        failing_since (datetime.datetime):
        failures (int): Failed attempts since then.
    """

    task: str
    object_: str
    reason: str
    failing_since: datetime.datetime
    failures: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        task = self.task

        object_ = self.object_

        reason = self.reason

        failing_since = self.failing_since.isoformat()

        failures = self.failures

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "task": task,
                "object": object_,
                "reason": reason,
                "failing_since": failing_since,
                "failures": failures,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        task = d.pop("task")

        object_ = d.pop("object")

        reason = d.pop("reason")

        failing_since = datetime.datetime.fromisoformat(d.pop("failing_since"))

        failures = d.pop("failures")

        failing_object_out = cls(
            task=task,
            object_=object_,
            reason=reason,
            failing_since=failing_since,
            failures=failures,
        )

        failing_object_out.additional_properties = d
        return failing_object_out

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
