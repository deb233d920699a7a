from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.job_kind import JobKind
from ..models.job_state import JobState
from ..models.requested_state import RequestedState
from ..models.wait_reason import WaitReason
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.job_out_progress import JobOutProgress


T = TypeVar("T", bound="JobOut")


@_attrs_define
class JobOut:
    """A job and its progress.

    Attributes:
        id (str):
        kind (JobKind): Type of a job.
        subject (str): At most one job of a type and subject is open at a time.
        state (JobState): State of a job.
        requested_state (RequestedState): Action requested by a running job's owner; its worker sees it at its next
            heartbeat.
        waiting_for (None | WaitReason): Why the job makes no progress; null if it does.
        attempt (int): Number of times the job was started.
        failures (int): Consecutive failed attempts without progress.
        attempts_max (int):
        progress (JobOutProgress): Progress, in a format specific to the job type.
        failure (str): Error of the last failed attempt; empty if none failed.
        created_at (datetime.datetime):
        run_after (datetime.datetime): A queued job does not start before this time.
        started_at (datetime.datetime | None):
        ended_at (datetime.datetime | None):
        wish (RequestedState | Unset): Action requested by a running job's owner; its worker sees it at its next
            heartbeat.
    """

    id: str
    kind: JobKind
    subject: str
    state: JobState
    requested_state: RequestedState
    waiting_for: None | WaitReason
    attempt: int
    failures: int
    attempts_max: int
    progress: JobOutProgress
    failure: str
    created_at: datetime.datetime
    run_after: datetime.datetime
    started_at: datetime.datetime | None
    ended_at: datetime.datetime | None
    wish: RequestedState | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        kind = self.kind.value

        subject = self.subject

        state = self.state.value

        requested_state = self.requested_state.value

        waiting_for: None | str
        if isinstance(self.waiting_for, WaitReason):
            waiting_for = self.waiting_for.value
        else:
            waiting_for = self.waiting_for

        attempt = self.attempt

        failures = self.failures

        attempts_max = self.attempts_max

        progress = self.progress.to_dict()

        failure = self.failure

        created_at = self.created_at.isoformat()

        run_after = self.run_after.isoformat()

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
                "kind": kind,
                "subject": subject,
                "state": state,
                "requested_state": requested_state,
                "waiting_for": waiting_for,
                "attempt": attempt,
                "failures": failures,
                "attempts_max": attempts_max,
                "progress": progress,
                "failure": failure,
                "created_at": created_at,
                "run_after": run_after,
                "started_at": started_at,
                "ended_at": ended_at,
            }
        )
        if wish is not UNSET:
            field_dict["wish"] = wish

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.job_out_progress import JobOutProgress  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        kind = JobKind(d.pop("kind"))

        subject = d.pop("subject")

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

        failures = d.pop("failures")

        attempts_max = d.pop("attempts_max")

        progress = JobOutProgress.from_dict(d.pop("progress"))

        failure = d.pop("failure")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        run_after = datetime.datetime.fromisoformat(d.pop("run_after"))

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

        job_out = cls(
            id=id,
            kind=kind,
            subject=subject,
            state=state,
            requested_state=requested_state,
            waiting_for=waiting_for,
            attempt=attempt,
            failures=failures,
            attempts_max=attempts_max,
            progress=progress,
            failure=failure,
            created_at=created_at,
            run_after=run_after,
            started_at=started_at,
            ended_at=ended_at,
            wish=wish,
        )

        job_out.additional_properties = d
        return job_out

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
