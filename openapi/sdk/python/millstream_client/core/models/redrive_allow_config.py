from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.redrive_permission import RedrivePermission
from ..types import UNSET, Unset

T = TypeVar("T", bound="RedriveAllowConfig")


@_attrs_define
class RedriveAllowConfig:
    """Queues that may use this one as their dead-letter queue.

    `sources` applies to `by_queue`.

        Attributes:
            permission (RedrivePermission | Unset): Rule for which queues may name a queue as dead-letter target (SQS
                RedriveAllowPolicy).
            sources (list[str] | Unset):
    """

    permission: RedrivePermission | Unset = UNSET
    sources: list[str] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        permission: str | Unset = UNSET
        if not isinstance(self.permission, Unset):
            permission = self.permission.value

        sources: list[str] | Unset = UNSET
        if not isinstance(self.sources, Unset):
            sources = self.sources

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if permission is not UNSET:
            field_dict["permission"] = permission
        if sources is not UNSET:
            field_dict["sources"] = sources

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        _permission = d.pop("permission", UNSET)
        permission: RedrivePermission | Unset
        if isinstance(_permission, Unset):
            permission = UNSET
        else:
            permission = RedrivePermission(_permission)

        sources = cast(list[str], d.pop("sources", UNSET))

        redrive_allow_config = cls(
            permission=permission,
            sources=sources,
        )

        return redrive_allow_config
