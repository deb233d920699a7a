from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.phase import Phase
from ..models.stores_out_durability import StoresOutDurability

if TYPE_CHECKING:
    from ..models.store_member_out import StoreMemberOut


T = TypeVar("T", bound="StoresOut")


@_attrs_define
class StoresOut:
    """The stores of the deployment: one, or a replica set.

    Attributes:
        durability (StoresOutDurability):
        replication_factor (int): Number of stores.
        min_insync_replicas (int): Stores, including the primary, that must have a write on disk before it is
            acknowledged.
        insync_replicas (int): Stores that have every acknowledged write, including the primary.
        primary (str):
        term (int):
        epoch (int):
        state (Phase): Phase of a change of the primary; stores are used in `NORMAL` alone.
        members (list[StoreMemberOut]):
        unknown_replicas (list[str]): Replicas of the primary that are not members. Disconnect them: they are counted as
            copies.
    """

    durability: StoresOutDurability
    replication_factor: int
    min_insync_replicas: int
    insync_replicas: int
    primary: str
    term: int
    epoch: int
    state: Phase
    members: list[StoreMemberOut]
    unknown_replicas: list[str]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        durability = self.durability.value

        replication_factor = self.replication_factor

        min_insync_replicas = self.min_insync_replicas

        insync_replicas = self.insync_replicas

        primary = self.primary

        term = self.term

        epoch = self.epoch

        state = self.state.value

        members = []
        for members_item_data in self.members:
            members_item = members_item_data.to_dict()
            members.append(members_item)

        unknown_replicas = self.unknown_replicas

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "durability": durability,
                "replication_factor": replication_factor,
                "min_insync_replicas": min_insync_replicas,
                "insync_replicas": insync_replicas,
                "primary": primary,
                "term": term,
                "epoch": epoch,
                "state": state,
                "members": members,
                "unknown_replicas": unknown_replicas,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.store_member_out import StoreMemberOut  # noqa: PLC0415

        d = dict(src_dict)
        durability = StoresOutDurability(d.pop("durability"))

        replication_factor = d.pop("replication_factor")

        min_insync_replicas = d.pop("min_insync_replicas")

        insync_replicas = d.pop("insync_replicas")

        primary = d.pop("primary")

        term = d.pop("term")

        epoch = d.pop("epoch")

        state = Phase(d.pop("state"))

        members = []
        _members = d.pop("members")
        for members_item_data in _members:
            members_item = StoreMemberOut.from_dict(members_item_data)

            members.append(members_item)

        unknown_replicas = cast(list[str], d.pop("unknown_replicas"))

        stores_out = cls(
            durability=durability,
            replication_factor=replication_factor,
            min_insync_replicas=min_insync_replicas,
            insync_replicas=insync_replicas,
            primary=primary,
            term=term,
            epoch=epoch,
            state=state,
            members=members,
            unknown_replicas=unknown_replicas,
        )

        stores_out.additional_properties = d
        return stores_out

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
