from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.member_role import MemberRole
from ..models.member_state import MemberState

T = TypeVar("T", bound="StoreMemberOut")


@_attrs_define
class StoreMemberOut:
    """A store. Its figures are null while it is away.

    Attributes:
        address (str):
        role (MemberRole): Role of a member, as far as it answers.
        state (MemberState): State of a member's copy of the data.
        epoch (int | None): Epoch of its copy of the data.
        position (int | None): Write flushes in its copy of the data; null for one store.
        lag_bytes (int | None): Sent by the primary and not yet confirmed.
        version (None | str):
        memory_used_bytes (int | None):
        memory_max_bytes (int | None): 0: no limit.
        pid (int | None): Process id, if `millstream up` runs it on this machine.
    """

    address: str
    role: MemberRole
    state: MemberState
    epoch: int | None
    position: int | None
    lag_bytes: int | None
    version: None | str
    memory_used_bytes: int | None
    memory_max_bytes: int | None
    pid: int | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        address = self.address

        role = self.role.value

        state = self.state.value

        epoch: int | None
        epoch = self.epoch

        position: int | None
        position = self.position

        lag_bytes: int | None
        lag_bytes = self.lag_bytes

        version: None | str
        version = self.version

        memory_used_bytes: int | None
        memory_used_bytes = self.memory_used_bytes

        memory_max_bytes: int | None
        memory_max_bytes = self.memory_max_bytes

        pid: int | None
        pid = self.pid

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "address": address,
                "role": role,
                "state": state,
                "epoch": epoch,
                "position": position,
                "lag_bytes": lag_bytes,
                "version": version,
                "memory_used_bytes": memory_used_bytes,
                "memory_max_bytes": memory_max_bytes,
                "pid": pid,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        address = d.pop("address")

        role = MemberRole(d.pop("role"))

        state = MemberState(d.pop("state"))

        def _parse_epoch(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        epoch = _parse_epoch(d.pop("epoch"))

        def _parse_position(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        position = _parse_position(d.pop("position"))

        def _parse_lag_bytes(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        lag_bytes = _parse_lag_bytes(d.pop("lag_bytes"))

        def _parse_version(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        version = _parse_version(d.pop("version"))

        def _parse_memory_used_bytes(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        memory_used_bytes = _parse_memory_used_bytes(d.pop("memory_used_bytes"))

        def _parse_memory_max_bytes(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        memory_max_bytes = _parse_memory_max_bytes(d.pop("memory_max_bytes"))

        def _parse_pid(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        pid = _parse_pid(d.pop("pid"))

        store_member_out = cls(
            address=address,
            role=role,
            state=state,
            epoch=epoch,
            position=position,
            lag_bytes=lag_bytes,
            version=version,
            memory_used_bytes=memory_used_bytes,
            memory_max_bytes=memory_max_bytes,
            pid=pid,
        )

        store_member_out.additional_properties = d
        return store_member_out

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
