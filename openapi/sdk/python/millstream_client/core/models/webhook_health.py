from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.disabled_reason import DisabledReason
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.blocked_shard import BlockedShard


T = TypeVar("T", bound="WebhookHealth")


@_attrs_define
class WebhookHealth:
    """Health of a webhook, as reported by its deliverer within the last seconds.

    `state`: `active`, `failing` since its last success, `paused` by its owner, or `disabled` by the service, for the
    `disabled_reason`: it was `failing` for too long, its receiver is `gone` (410), or its configuration is `invalid`.

        Attributes:
            state (str):
            disabled_reason (DisabledReason | None):
            disabled_at (datetime.datetime | None):
            failing_since (datetime.datetime | None):
            last_success_at (datetime.datetime | None):
            last_failure_at (datetime.datetime | None):
            last_failure (str):
            delivered (int):
            failed (int):
            blocked (list[BlockedShard]):
            disabled_because (DisabledReason | None | Unset): Former name of `disabled_reason`, which replaces it.
    """

    state: str
    disabled_reason: DisabledReason | None
    disabled_at: datetime.datetime | None
    failing_since: datetime.datetime | None
    last_success_at: datetime.datetime | None
    last_failure_at: datetime.datetime | None
    last_failure: str
    delivered: int
    failed: int
    blocked: list[BlockedShard]
    disabled_because: DisabledReason | None | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        state = self.state

        disabled_reason: None | str
        if isinstance(self.disabled_reason, DisabledReason):
            disabled_reason = self.disabled_reason.value
        else:
            disabled_reason = self.disabled_reason

        disabled_at: None | str
        if isinstance(self.disabled_at, datetime.datetime):
            disabled_at = self.disabled_at.isoformat()
        else:
            disabled_at = self.disabled_at

        failing_since: None | str
        if isinstance(self.failing_since, datetime.datetime):
            failing_since = self.failing_since.isoformat()
        else:
            failing_since = self.failing_since

        last_success_at: None | str
        if isinstance(self.last_success_at, datetime.datetime):
            last_success_at = self.last_success_at.isoformat()
        else:
            last_success_at = self.last_success_at

        last_failure_at: None | str
        if isinstance(self.last_failure_at, datetime.datetime):
            last_failure_at = self.last_failure_at.isoformat()
        else:
            last_failure_at = self.last_failure_at

        last_failure = self.last_failure

        delivered = self.delivered

        failed = self.failed

        blocked = []
        for blocked_item_data in self.blocked:
            blocked_item = blocked_item_data.to_dict()
            blocked.append(blocked_item)

        disabled_because: None | str | Unset
        if isinstance(self.disabled_because, Unset):
            disabled_because = UNSET
        elif isinstance(self.disabled_because, DisabledReason):
            disabled_because = self.disabled_because.value
        else:
            disabled_because = self.disabled_because

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "state": state,
                "disabled_reason": disabled_reason,
                "disabled_at": disabled_at,
                "failing_since": failing_since,
                "last_success_at": last_success_at,
                "last_failure_at": last_failure_at,
                "last_failure": last_failure,
                "delivered": delivered,
                "failed": failed,
                "blocked": blocked,
            }
        )
        if disabled_because is not UNSET:
            field_dict["disabled_because"] = disabled_because

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.blocked_shard import BlockedShard  # noqa: PLC0415

        d = dict(src_dict)
        state = d.pop("state")

        def _parse_disabled_reason(data: object) -> DisabledReason | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                disabled_reason_type_0 = DisabledReason(data)

                return disabled_reason_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(DisabledReason | None, data)

        disabled_reason = _parse_disabled_reason(d.pop("disabled_reason"))

        def _parse_disabled_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                disabled_at_type_0 = datetime.datetime.fromisoformat(data)

                return disabled_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        disabled_at = _parse_disabled_at(d.pop("disabled_at"))

        def _parse_failing_since(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                failing_since_type_0 = datetime.datetime.fromisoformat(data)

                return failing_since_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        failing_since = _parse_failing_since(d.pop("failing_since"))

        def _parse_last_success_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                last_success_at_type_0 = datetime.datetime.fromisoformat(data)

                return last_success_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        last_success_at = _parse_last_success_at(d.pop("last_success_at"))

        def _parse_last_failure_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                last_failure_at_type_0 = datetime.datetime.fromisoformat(data)

                return last_failure_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        last_failure_at = _parse_last_failure_at(d.pop("last_failure_at"))

        last_failure = d.pop("last_failure")

        delivered = d.pop("delivered")

        failed = d.pop("failed")

        blocked = []
        _blocked = d.pop("blocked")
        for blocked_item_data in _blocked:
            blocked_item = BlockedShard.from_dict(blocked_item_data)

            blocked.append(blocked_item)

        def _parse_disabled_because(data: object) -> DisabledReason | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                disabled_because_type_0 = DisabledReason(data)

                return disabled_because_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(DisabledReason | None | Unset, data)

        disabled_because = _parse_disabled_because(d.pop("disabled_because", UNSET))

        webhook_health = cls(
            state=state,
            disabled_reason=disabled_reason,
            disabled_at=disabled_at,
            failing_since=failing_since,
            last_success_at=last_success_at,
            last_failure_at=last_failure_at,
            last_failure=last_failure,
            delivered=delivered,
            failed=failed,
            blocked=blocked,
            disabled_because=disabled_because,
        )

        webhook_health.additional_properties = d
        return webhook_health

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
