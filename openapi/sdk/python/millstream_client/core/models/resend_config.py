from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.attempt_outcome import AttemptOutcome
from ..models.delivery_status import DeliveryStatus
from ..types import UNSET, Unset

T = TypeVar("T", bound="ResendConfig")


@_attrs_define
class ResendConfig:
    """Deliveries to resend: those that match all given conditions.

    Attributes:
        status (DeliveryStatus | Unset): Status of a delivery.

            delivered: the receiver has it. retrying: it will be retried. failed: it was dead-lettered. gap: records that
            could not be delivered because they no longer exist.
        response_status (int | None | Unset): HTTP status of the last attempt.
        outcome (AttemptOutcome | None | Unset): Outcome of the last attempt.
        from_ (datetime.datetime | None | Unset): First attempt at or after this time.
        to (datetime.datetime | None | Unset): First attempt before this time.
        deliveries_max (int | Unset): Maximum number of deliveries to resend in this call. Default: 100.
        cursor (str | Unset): `next_cursor` of the previous call. Default: ''.
        dry_run (bool | Unset): Count the deliveries without sending anything. Default: False.
    """

    status: DeliveryStatus | Unset = UNSET
    response_status: int | None | Unset = UNSET
    outcome: AttemptOutcome | None | Unset = UNSET
    from_: datetime.datetime | None | Unset = UNSET
    to: datetime.datetime | None | Unset = UNSET
    deliveries_max: int | Unset = 100
    cursor: str | Unset = ""
    dry_run: bool | Unset = False

    def to_dict(self) -> dict[str, Any]:
        status: str | Unset = UNSET
        if not isinstance(self.status, Unset):
            status = self.status.value

        response_status: int | None | Unset
        if isinstance(self.response_status, Unset):
            response_status = UNSET
        else:
            response_status = self.response_status

        outcome: None | str | Unset
        if isinstance(self.outcome, Unset):
            outcome = UNSET
        elif isinstance(self.outcome, AttemptOutcome):
            outcome = self.outcome.value
        else:
            outcome = self.outcome

        from_: None | str | Unset
        if isinstance(self.from_, Unset):
            from_ = UNSET
        elif isinstance(self.from_, datetime.datetime):
            from_ = self.from_.isoformat()
        else:
            from_ = self.from_

        to: None | str | Unset
        if isinstance(self.to, Unset):
            to = UNSET
        elif isinstance(self.to, datetime.datetime):
            to = self.to.isoformat()
        else:
            to = self.to

        deliveries_max = self.deliveries_max

        cursor = self.cursor

        dry_run = self.dry_run

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if status is not UNSET:
            field_dict["status"] = status
        if response_status is not UNSET:
            field_dict["response_status"] = response_status
        if outcome is not UNSET:
            field_dict["outcome"] = outcome
        if from_ is not UNSET:
            field_dict["from"] = from_
        if to is not UNSET:
            field_dict["to"] = to
        if deliveries_max is not UNSET:
            field_dict["deliveries_max"] = deliveries_max
        if cursor is not UNSET:
            field_dict["cursor"] = cursor
        if dry_run is not UNSET:
            field_dict["dry_run"] = dry_run

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        _status = d.pop("status", UNSET)
        status: DeliveryStatus | Unset
        if isinstance(_status, Unset):
            status = UNSET
        else:
            status = DeliveryStatus(_status)

        def _parse_response_status(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        response_status = _parse_response_status(d.pop("response_status", UNSET))

        def _parse_outcome(data: object) -> AttemptOutcome | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                outcome_type_0 = AttemptOutcome(data)

                return outcome_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(AttemptOutcome | None | Unset, data)

        outcome = _parse_outcome(d.pop("outcome", UNSET))

        def _parse_from_(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                from_type_0 = datetime.datetime.fromisoformat(data)

                return from_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        from_ = _parse_from_(d.pop("from", UNSET))

        def _parse_to(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                to_type_0 = datetime.datetime.fromisoformat(data)

                return to_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        to = _parse_to(d.pop("to", UNSET))

        deliveries_max = d.pop("deliveries_max", UNSET)

        cursor = d.pop("cursor", UNSET)

        dry_run = d.pop("dry_run", UNSET)

        resend_config = cls(
            status=status,
            response_status=response_status,
            outcome=outcome,
            from_=from_,
            to=to,
            deliveries_max=deliveries_max,
            cursor=cursor,
            dry_run=dry_run,
        )

        return resend_config
