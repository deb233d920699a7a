from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.phase import Phase

T = TypeVar("T", bound="ReplicaSetOut")


@_attrs_define
class ReplicaSetOut:
    """The replica set, as recorded in Postgres.

    Attributes:
        members (list[str]): Addresses, in the order of their addition.
        primary (str):
        term (int): Number of the last attempt to change the primary; 0 for one store.
        epoch (int): Term that promoted the primary.
        state (Phase): Phase of a change of the primary; stores are used in `NORMAL` alone.
        min_insync_replicas (int): Stores, including the primary, that must have a write on disk before it is
            acknowledged.
    """

    members: list[str]
    primary: str
    term: int
    epoch: int
    state: Phase
    min_insync_replicas: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        members = self.members

        primary = self.primary

        term = self.term

        epoch = self.epoch

        state = self.state.value

        min_insync_replicas = self.min_insync_replicas

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "members": members,
                "primary": primary,
                "term": term,
                "epoch": epoch,
                "state": state,
                "min_insync_replicas": min_insync_replicas,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        members = cast(list[str], d.pop("members"))

        primary = d.pop("primary")

        term = d.pop("term")

        epoch = d.pop("epoch")

        state = Phase(d.pop("state"))

        min_insync_replicas = d.pop("min_insync_replicas")

        replica_set_out = cls(
            members=members,
            primary=primary,
            term=term,
            epoch=epoch,
            state=state,
            min_insync_replicas=min_insync_replicas,
        )

        replica_set_out.additional_properties = d
        return replica_set_out

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
