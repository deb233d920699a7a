from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="SourceStats")


@_attrs_define
class SourceStats:
    """Numbers of requests since the source was created, and the waiting events.

    `failure`: why events are not delivered to the target, as this process last saw it.

        Attributes:
            accepted (int):
            duplicates (int):
            rejected (int):
            handshakes (int):
            waiting (int):
            waiting_bytes (int):
            last_accepted_at (datetime.datetime | None):
            last_rejected_at (datetime.datetime | None):
            failure (str):
    """

    accepted: int
    duplicates: int
    rejected: int
    handshakes: int
    waiting: int
    waiting_bytes: int
    last_accepted_at: datetime.datetime | None
    last_rejected_at: datetime.datetime | None
    failure: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        accepted = self.accepted

        duplicates = self.duplicates

        rejected = self.rejected

        handshakes = self.handshakes

        waiting = self.waiting

        waiting_bytes = self.waiting_bytes

        last_accepted_at: None | str
        if isinstance(self.last_accepted_at, datetime.datetime):
            last_accepted_at = self.last_accepted_at.isoformat()
        else:
            last_accepted_at = self.last_accepted_at

        last_rejected_at: None | str
        if isinstance(self.last_rejected_at, datetime.datetime):
            last_rejected_at = self.last_rejected_at.isoformat()
        else:
            last_rejected_at = self.last_rejected_at

        failure = self.failure

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "accepted": accepted,
                "duplicates": duplicates,
                "rejected": rejected,
                "handshakes": handshakes,
                "waiting": waiting,
                "waiting_bytes": waiting_bytes,
                "last_accepted_at": last_accepted_at,
                "last_rejected_at": last_rejected_at,
                "failure": failure,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        accepted = d.pop("accepted")

        duplicates = d.pop("duplicates")

        rejected = d.pop("rejected")

        handshakes = d.pop("handshakes")

        waiting = d.pop("waiting")

        waiting_bytes = d.pop("waiting_bytes")

        def _parse_last_accepted_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                last_accepted_at_type_0 = datetime.datetime.fromisoformat(data)

                return last_accepted_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        last_accepted_at = _parse_last_accepted_at(d.pop("last_accepted_at"))

        def _parse_last_rejected_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                last_rejected_at_type_0 = datetime.datetime.fromisoformat(data)

                return last_rejected_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        last_rejected_at = _parse_last_rejected_at(d.pop("last_rejected_at"))

        failure = d.pop("failure")

        source_stats = cls(
            accepted=accepted,
            duplicates=duplicates,
            rejected=rejected,
            handshakes=handshakes,
            waiting=waiting,
            waiting_bytes=waiting_bytes,
            last_accepted_at=last_accepted_at,
            last_rejected_at=last_rejected_at,
            failure=failure,
        )

        source_stats.additional_properties = d
        return source_stats

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
