from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.job_state import JobState
from ..models.order import Order
from ..models.requested_state import RequestedState
from ..models.wait_reason import WaitReason
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.target_config import TargetConfig


T = TypeVar("T", bound="ReplayOut")


@_attrs_define
class ReplayOut:
    """A replay.

    Attributes:
        id (str):
        stream (str):
        target (TargetConfig): Target of the records: exactly one of the two.
        order (Order): Order that a replay preserves: within a shard, within a key, by arrival time, or none.
        state (JobState): State of a job.
        requested_state (RequestedState): Action requested by a running job's owner; its worker sees it at its next
            heartbeat.
        waiting_for (None | WaitReason): Why the queued replay makes no progress; null if it does.
        attempt (int):
        failure (str): Error of the last failed attempt; empty if none failed.
        created_at (datetime.datetime):
        started_at (datetime.datetime | None):
        ended_at (datetime.datetime | None):
        wish (RequestedState | Unset): Action requested by a running job's owner; its worker sees it at its next
            heartbeat.
    """

    id: str
    stream: str
    target: TargetConfig
    order: Order
    state: JobState
    requested_state: RequestedState
    waiting_for: None | WaitReason
    attempt: int
    failure: str
    created_at: datetime.datetime
    started_at: datetime.datetime | None
    ended_at: datetime.datetime | None
    wish: RequestedState | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        stream = self.stream

        target = self.target.to_dict()

        order = self.order.value

        state = self.state.value

        requested_state = self.requested_state.value

        waiting_for: None | str
        if isinstance(self.waiting_for, WaitReason):
            waiting_for = self.waiting_for.value
        else:
            waiting_for = self.waiting_for

        attempt = self.attempt

        failure = self.failure

        created_at = self.created_at.isoformat()

        started_at: None | str
        if isinstance(self.started_at, datetime.datetime):
            started_at = self.started_at.isoformat()
        else:
            started_at = self.started_at

        ended_at: None | str
        if isinstance(self.ended_at, datetime.datetime):
            ended_at = self.ended_at.isoformat()
        else:
            ended_at = self.ended_at

        wish: str | Unset = UNSET
        if not isinstance(self.wish, Unset):
            wish = self.wish.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "stream": stream,
                "target": target,
                "order": order,
                "state": state,
                "requested_state": requested_state,
                "waiting_for": waiting_for,
                "attempt": attempt,
                "failure": failure,
                "created_at": created_at,
                "started_at": started_at,
                "ended_at": ended_at,
            }
        )
        if wish is not UNSET:
            field_dict["wish"] = wish

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.target_config import TargetConfig  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        stream = d.pop("stream")

        target = TargetConfig.from_dict(d.pop("target"))

        order = Order(d.pop("order"))

        state = JobState(d.pop("state"))

        requested_state = RequestedState(d.pop("requested_state"))

        def _parse_waiting_for(data: object) -> None | WaitReason:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                waiting_for_type_0 = WaitReason(data)

                return waiting_for_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | WaitReason, data)

        waiting_for = _parse_waiting_for(d.pop("waiting_for"))

        attempt = d.pop("attempt")

        failure = d.pop("failure")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_started_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                started_at_type_0 = datetime.datetime.fromisoformat(data)

                return started_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        started_at = _parse_started_at(d.pop("started_at"))

        def _parse_ended_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                ended_at_type_0 = datetime.datetime.fromisoformat(data)

                return ended_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        ended_at = _parse_ended_at(d.pop("ended_at"))

        _wish = d.pop("wish", UNSET)
        wish: RequestedState | Unset
        if isinstance(_wish, Unset):
            wish = UNSET
        else:
            wish = RequestedState(_wish)

        replay_out = cls(
            id=id,
            stream=stream,
            target=target,
            order=order,
            state=state,
            requested_state=requested_state,
            waiting_for=waiting_for,
            attempt=attempt,
            failure=failure,
            created_at=created_at,
            started_at=started_at,
            ended_at=ended_at,
            wish=wish,
        )

        replay_out.additional_properties = d
        return replay_out

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
