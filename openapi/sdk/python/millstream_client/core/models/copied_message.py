from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.copied_header import CopiedHeader


T = TypeVar("T", bound="CopiedMessage")


@_attrs_define
class CopiedMessage:
    """A message with all that a copy needs. Times are milliseconds since 1970.

    `headers` include reserved ones. `retained_from_ms`: start of its retention, 0 for its arrival. `due_at_ms`: None
    unless it is
    delayed. `died_at_ms`: None unless it is a dead letter, then with its `reason`. A message in flight, or in transfer
    to another
    queue, is shown as ready.

        Attributes:
            offset (int):
            data (str):
            headers (list[CopiedHeader]):
            arrival_ms (int):
            retained_from_ms (int | Unset):  Default: 0.
            due_at_ms (int | None | Unset):
            expires_at_ms (int | Unset):  Default: 0.
            group (str | Unset):  Default: ''.
            priority (int | Unset):  Default: 0.
            receive_count (int | Unset):  Default: 0.
            failures (int | Unset):  Default: 0.
            crash_count (int | Unset):  Default: 0.
            first_received_at_ms (int | Unset):  Default: 0.
            last_failure_reason (str | Unset):  Default: ''.
            details (str | Unset):  Default: ''.
            died_at_ms (int | None | Unset):
            reason (str | Unset):  Default: ''.
    """

    offset: int
    data: str
    headers: list[CopiedHeader]
    arrival_ms: int
    retained_from_ms: int | Unset = 0
    due_at_ms: int | None | Unset = UNSET
    expires_at_ms: int | Unset = 0
    group: str | Unset = ""
    priority: int | Unset = 0
    receive_count: int | Unset = 0
    failures: int | Unset = 0
    crash_count: int | Unset = 0
    first_received_at_ms: int | Unset = 0
    last_failure_reason: str | Unset = ""
    details: str | Unset = ""
    died_at_ms: int | None | Unset = UNSET
    reason: str | Unset = ""
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        offset = self.offset

        data = self.data

        headers = []
        for headers_item_data in self.headers:
            headers_item = headers_item_data.to_dict()
            headers.append(headers_item)

        arrival_ms = self.arrival_ms

        retained_from_ms = self.retained_from_ms

        due_at_ms: int | None | Unset
        if isinstance(self.due_at_ms, Unset):
            due_at_ms = UNSET
        else:
            due_at_ms = self.due_at_ms

        expires_at_ms = self.expires_at_ms

        group = self.group

        priority = self.priority

        receive_count = self.receive_count

        failures = self.failures

        crash_count = self.crash_count

        first_received_at_ms = self.first_received_at_ms

        last_failure_reason = self.last_failure_reason

        details = self.details

        died_at_ms: int | None | Unset
        if isinstance(self.died_at_ms, Unset):
            died_at_ms = UNSET
        else:
            died_at_ms = self.died_at_ms

        reason = self.reason

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "offset": offset,
                "data": data,
                "headers": headers,
                "arrival_ms": arrival_ms,
            }
        )
        if retained_from_ms is not UNSET:
            field_dict["retained_from_ms"] = retained_from_ms
        if due_at_ms is not UNSET:
            field_dict["due_at_ms"] = due_at_ms
        if expires_at_ms is not UNSET:
            field_dict["expires_at_ms"] = expires_at_ms
        if group is not UNSET:
            field_dict["group"] = group
        if priority is not UNSET:
            field_dict["priority"] = priority
        if receive_count is not UNSET:
            field_dict["receive_count"] = receive_count
        if failures is not UNSET:
            field_dict["failures"] = failures
        if crash_count is not UNSET:
            field_dict["crash_count"] = crash_count
        if first_received_at_ms is not UNSET:
            field_dict["first_received_at_ms"] = first_received_at_ms
        if last_failure_reason is not UNSET:
            field_dict["last_failure_reason"] = last_failure_reason
        if details is not UNSET:
            field_dict["details"] = details
        if died_at_ms is not UNSET:
            field_dict["died_at_ms"] = died_at_ms
        if reason is not UNSET:
            field_dict["reason"] = reason

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.copied_header import CopiedHeader  # noqa: PLC0415

        d = dict(src_dict)
        offset = d.pop("offset")

        data = d.pop("data")

        headers = []
        _headers = d.pop("headers")
        for headers_item_data in _headers:
            headers_item = CopiedHeader.from_dict(headers_item_data)

            headers.append(headers_item)

        arrival_ms = d.pop("arrival_ms")

        retained_from_ms = d.pop("retained_from_ms", UNSET)

        def _parse_due_at_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        due_at_ms = _parse_due_at_ms(d.pop("due_at_ms", UNSET))

        expires_at_ms = d.pop("expires_at_ms", UNSET)

        group = d.pop("group", UNSET)

        priority = d.pop("priority", UNSET)

        receive_count = d.pop("receive_count", UNSET)

        failures = d.pop("failures", UNSET)

        crash_count = d.pop("crash_count", UNSET)

        first_received_at_ms = d.pop("first_received_at_ms", UNSET)

        last_failure_reason = d.pop("last_failure_reason", UNSET)

        details = d.pop("details", UNSET)

        def _parse_died_at_ms(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        died_at_ms = _parse_died_at_ms(d.pop("died_at_ms", UNSET))

        reason = d.pop("reason", UNSET)

        copied_message = cls(
            offset=offset,
            data=data,
            headers=headers,
            arrival_ms=arrival_ms,
            retained_from_ms=retained_from_ms,
            due_at_ms=due_at_ms,
            expires_at_ms=expires_at_ms,
            group=group,
            priority=priority,
            receive_count=receive_count,
            failures=failures,
            crash_count=crash_count,
            first_received_at_ms=first_received_at_ms,
            last_failure_reason=last_failure_reason,
            details=details,
            died_at_ms=died_at_ms,
            reason=reason,
        )

        copied_message.additional_properties = d
        return copied_message

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
