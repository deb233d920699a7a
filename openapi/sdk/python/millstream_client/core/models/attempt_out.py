from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.attempt_outcome import AttemptOutcome

T = TypeVar("T", bound="AttemptOut")


@_attrs_define
class AttemptOut:
    """One request to the receiver.

    `status` is null if there was no response. `resent`: the attempt is a manual resend.

        Attributes:
            at (datetime.datetime):
            outcome (AttemptOutcome): Outcome of an attempt: delivered, or the reason for its failure.

                credentials: the token endpoint gave no access token, and nothing was sent to the receiver.
            status (int | None):
            duration_seconds (float):
            error (str):
            response (str): Response body, truncated to 4 KiB.
            resent (bool):
    """

    at: datetime.datetime
    outcome: AttemptOutcome
    status: int | None
    duration_seconds: float
    error: str
    response: str
    resent: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        at = self.at.isoformat()

        outcome = self.outcome.value

        status: int | None
        status = self.status

        duration_seconds = self.duration_seconds

        error = self.error

        response = self.response

        resent = self.resent

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "at": at,
                "outcome": outcome,
                "status": status,
                "duration_seconds": duration_seconds,
                "error": error,
                "response": response,
                "resent": resent,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))

        outcome = AttemptOutcome(d.pop("outcome"))

        def _parse_status(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        status = _parse_status(d.pop("status"))

        duration_seconds = d.pop("duration_seconds")

        error = d.pop("error")

        response = d.pop("response")

        resent = d.pop("resent")

        attempt_out = cls(
            at=at,
            outcome=outcome,
            status=status,
            duration_seconds=duration_seconds,
            error=error,
            response=response,
            resent=resent,
        )

        attempt_out.additional_properties = d
        return attempt_out

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
