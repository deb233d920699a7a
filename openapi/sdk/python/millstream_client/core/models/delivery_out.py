from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.delivery_status import DeliveryStatus

if TYPE_CHECKING:
    from ..models.attempt_out import AttemptOut


T = TypeVar("T", bound="DeliveryOut")


@_attrs_define
class DeliveryOut:
    """A delivery of a message or record.

    `attempts` counts all attempts; `last_attempts` has the latest 20.

        Attributes:
            id (str): `webhook-id` header sent to the receiver.
            status (DeliveryStatus): Status of a delivery.

                delivered: the receiver has it. retrying: it will be retried. failed: it was dead-lettered. gap: records that
                could not be delivered because they no longer exist.
            attempts (int):
            last_attempts (list[AttemptOut]):
            first_at (datetime.datetime):
            last_at (datetime.datetime):
            next_at (datetime.datetime | None):
            sent_at (datetime.datetime):
            shard (int | None):
            offset (int | None):
    """

    id: str
    status: DeliveryStatus
    attempts: int
    last_attempts: list[AttemptOut]
    first_at: datetime.datetime
    last_at: datetime.datetime
    next_at: datetime.datetime | None
    sent_at: datetime.datetime
    shard: int | None
    offset: int | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        status = self.status.value

        attempts = self.attempts

        last_attempts = []
        for last_attempts_item_data in self.last_attempts:
            last_attempts_item = last_attempts_item_data.to_dict()
            last_attempts.append(last_attempts_item)

        first_at = self.first_at.isoformat()

        last_at = self.last_at.isoformat()

        next_at: None | str
        if isinstance(self.next_at, datetime.datetime):
            next_at = self.next_at.isoformat()
        else:
            next_at = self.next_at

        sent_at = self.sent_at.isoformat()

        shard: int | None
        shard = self.shard

        offset: int | None
        offset = self.offset

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "status": status,
                "attempts": attempts,
                "last_attempts": last_attempts,
                "first_at": first_at,
                "last_at": last_at,
                "next_at": next_at,
                "sent_at": sent_at,
                "shard": shard,
                "offset": offset,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.attempt_out import AttemptOut  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        status = DeliveryStatus(d.pop("status"))

        attempts = d.pop("attempts")

        last_attempts = []
        _last_attempts = d.pop("last_attempts")
        for last_attempts_item_data in _last_attempts:
            last_attempts_item = AttemptOut.from_dict(last_attempts_item_data)

            last_attempts.append(last_attempts_item)

        first_at = datetime.datetime.fromisoformat(d.pop("first_at"))

        last_at = datetime.datetime.fromisoformat(d.pop("last_at"))

        def _parse_next_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                next_at_type_0 = datetime.datetime.fromisoformat(data)

                return next_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        next_at = _parse_next_at(d.pop("next_at"))

        sent_at = datetime.datetime.fromisoformat(d.pop("sent_at"))

        def _parse_shard(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        shard = _parse_shard(d.pop("shard"))

        def _parse_offset(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        offset = _parse_offset(d.pop("offset"))

        delivery_out = cls(
            id=id,
            status=status,
            attempts=attempts,
            last_attempts=last_attempts,
            first_at=first_at,
            last_at=last_at,
            next_at=next_at,
            sent_at=sent_at,
            shard=shard,
            offset=offset,
        )

        delivery_out.additional_properties = d
        return delivery_out

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
