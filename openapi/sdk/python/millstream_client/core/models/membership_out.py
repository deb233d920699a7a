from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.place_out import PlaceOut


T = TypeVar("T", bound="MembershipOut")


@_attrs_define
class MembershipOut:
    """The member's shards, the shards to release, and the generation for commits.

    Attributes:
        member (str):
        generation (int):
        assigned (list[PlaceOut]):
        revoked (list[PlaceOut]):
        heartbeat_seconds (float):
        session_timeout_seconds (float):
    """

    member: str
    generation: int
    assigned: list[PlaceOut]
    revoked: list[PlaceOut]
    heartbeat_seconds: float
    session_timeout_seconds: float
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        member = self.member

        generation = self.generation

        assigned = []
        for assigned_item_data in self.assigned:
            assigned_item = assigned_item_data.to_dict()
            assigned.append(assigned_item)

        revoked = []
        for revoked_item_data in self.revoked:
            revoked_item = revoked_item_data.to_dict()
            revoked.append(revoked_item)

        heartbeat_seconds = self.heartbeat_seconds

        session_timeout_seconds = self.session_timeout_seconds

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "member": member,
                "generation": generation,
                "assigned": assigned,
                "revoked": revoked,
                "heartbeat_seconds": heartbeat_seconds,
                "session_timeout_seconds": session_timeout_seconds,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.place_out import PlaceOut  # noqa: PLC0415

        d = dict(src_dict)
        member = d.pop("member")

        generation = d.pop("generation")

        assigned = []
        _assigned = d.pop("assigned")
        for assigned_item_data in _assigned:
            assigned_item = PlaceOut.from_dict(assigned_item_data)

            assigned.append(assigned_item)

        revoked = []
        _revoked = d.pop("revoked")
        for revoked_item_data in _revoked:
            revoked_item = PlaceOut.from_dict(revoked_item_data)

            revoked.append(revoked_item)

        heartbeat_seconds = d.pop("heartbeat_seconds")

        session_timeout_seconds = d.pop("session_timeout_seconds")

        membership_out = cls(
            member=member,
            generation=generation,
            assigned=assigned,
            revoked=revoked,
            heartbeat_seconds=heartbeat_seconds,
            session_timeout_seconds=session_timeout_seconds,
        )

        membership_out.additional_properties = d
        return membership_out

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
