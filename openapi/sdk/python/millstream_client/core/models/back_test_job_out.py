from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.job_state import JobState
from ..models.requested_state import RequestedState
from ..models.wait_reason import WaitReason

if TYPE_CHECKING:
    from ..models.back_test_out import BackTestOut


T = TypeVar("T", bound="BackTestJobOut")


@_attrs_define
class BackTestJobOut:
    """A back-test that runs as a job, and its result so far.

    Attributes:
        id (str): Id of the job, by which it is cancelled and retried.
        state (JobState): State of a job.
        requested_state (RequestedState): Action requested by a running job's owner; its worker sees it at its next
            heartbeat.
        waiting_for (None | WaitReason): Why the job makes no progress; null if it does.
        attempt (int):
        failure (str): Error of the last failed attempt; empty if none failed.
        created_at (datetime.datetime):
        started_at (datetime.datetime | None):
        ended_at (datetime.datetime | None):
        topic (str):
        match (Any): A match, or a list of them, of which any takes a message. A match is an object with `subject`,
            `filter` and `where`; all that are given must hold. null: every message. `unmatched`: messages that no other
            live route of the topic takes.
        compare_with (None | str):
        start_time (datetime.datetime | None):
        end_time (datetime.datetime | None):
        messages (int): Messages of the range, of which `result.evaluated` are evaluated.
        result (BackTestOut): Messages that a match takes, of those that were evaluated.
    """

    id: str
    state: JobState
    requested_state: RequestedState
    waiting_for: None | WaitReason
    attempt: int
    failure: str
    created_at: datetime.datetime
    started_at: datetime.datetime | None
    ended_at: datetime.datetime | None
    topic: str
    match: Any
    compare_with: None | str
    start_time: datetime.datetime | None
    end_time: datetime.datetime | None
    messages: int
    result: BackTestOut
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

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

        topic = self.topic

        match = self.match

        compare_with: None | str
        compare_with = self.compare_with

        start_time: None | str
        if isinstance(self.start_time, datetime.datetime):
            start_time = self.start_time.isoformat()
        else:
            start_time = self.start_time

        end_time: None | str
        if isinstance(self.end_time, datetime.datetime):
            end_time = self.end_time.isoformat()
        else:
            end_time = self.end_time

        messages = self.messages

        result = self.result.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "state": state,
                "requested_state": requested_state,
                "waiting_for": waiting_for,
                "attempt": attempt,
                "failure": failure,
                "created_at": created_at,
                "started_at": started_at,
                "ended_at": ended_at,
                "topic": topic,
                "match": match,
                "compare_with": compare_with,
                "start_time": start_time,
                "end_time": end_time,
                "messages": messages,
                "result": result,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.back_test_out import BackTestOut  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

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

        topic = d.pop("topic")

        match = d.pop("match")

        def _parse_compare_with(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        compare_with = _parse_compare_with(d.pop("compare_with"))

        def _parse_start_time(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                start_time_type_0 = datetime.datetime.fromisoformat(data)

                return start_time_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        start_time = _parse_start_time(d.pop("start_time"))

        def _parse_end_time(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                end_time_type_0 = datetime.datetime.fromisoformat(data)

                return end_time_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        end_time = _parse_end_time(d.pop("end_time"))

        messages = d.pop("messages")

        result = BackTestOut.from_dict(d.pop("result"))

        back_test_job_out = cls(
            id=id,
            state=state,
            requested_state=requested_state,
            waiting_for=waiting_for,
            attempt=attempt,
            failure=failure,
            created_at=created_at,
            started_at=started_at,
            ended_at=ended_at,
            topic=topic,
            match=match,
            compare_with=compare_with,
            start_time=start_time,
            end_time=end_time,
            messages=messages,
            result=result,
        )

        back_test_job_out.additional_properties = d
        return back_test_job_out

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
