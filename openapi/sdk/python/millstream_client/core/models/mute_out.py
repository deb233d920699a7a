from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.alert_kind import AlertKind

T = TypeVar("T", bound="MuteOut")


@_attrs_define
class MuteOut:
    """A muted alert: the dashboard lists it separately, until a time.

    Attributes:
        kind (AlertKind): Kind of an alert.

            A mute names it: a state that gets worse has another kind, which is not muted.
        name (str): Name of the object that the alert is about.
        muted_by (str): Name of the principal that muted it.
        muted_at (datetime.datetime):
        until (datetime.datetime): End of the mute.
    """

    kind: AlertKind
    name: str
    muted_by: str
    muted_at: datetime.datetime
    until: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind.value

        name = self.name

        muted_by = self.muted_by

        muted_at = self.muted_at.isoformat()

        until = self.until.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "kind": kind,
                "name": name,
                "muted_by": muted_by,
                "muted_at": muted_at,
                "until": until,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = AlertKind(d.pop("kind"))

        name = d.pop("name")

        muted_by = d.pop("muted_by")

        muted_at = datetime.datetime.fromisoformat(d.pop("muted_at"))

        until = datetime.datetime.fromisoformat(d.pop("until"))

        mute_out = cls(
            kind=kind,
            name=name,
            muted_by=muted_by,
            muted_at=muted_at,
            until=until,
        )

        mute_out.additional_properties = d
        return mute_out

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
