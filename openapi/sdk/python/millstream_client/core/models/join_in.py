from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="JoinIn")


@_attrs_define
class JoinIn:
    """The joining member.

    Its name, or a static instance that keeps its shards across restarts, or neither.

        Attributes:
            member (None | str | Unset):
            instance_id (None | str | Unset): Makes the member static, with this name.
    """

    member: None | str | Unset = UNSET
    instance_id: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        member: None | str | Unset
        if isinstance(self.member, Unset):
            member = UNSET
        else:
            member = self.member

        instance_id: None | str | Unset
        if isinstance(self.instance_id, Unset):
            instance_id = UNSET
        else:
            instance_id = self.instance_id

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if member is not UNSET:
            field_dict["member"] = member
        if instance_id is not UNSET:
            field_dict["instance_id"] = instance_id

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_member(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        member = _parse_member(d.pop("member", UNSET))

        def _parse_instance_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        instance_id = _parse_instance_id(d.pop("instance_id", UNSET))

        join_in = cls(
            member=member,
            instance_id=instance_id,
        )

        return join_in
