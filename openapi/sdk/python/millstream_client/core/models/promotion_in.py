from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="PromotionIn")


@_attrs_define
class PromotionIn:
    """Treatment of the other deployment, and of records that are not here yet.

    Attributes:
        fence (bool | Unset): Make the streams and queues read-only in the other deployment first, if it can be reached:
            its writers get `fence_mismatch`, and its queues deliver nothing. Needs `stream:manage` and `queue:manage`
            there. Default: True.
        wait_seconds (float | Unset): Maximum time to copy the last records in, once the other deployment is read-only.
            Default: 20.0.
        force (bool | Unset): Promote the mirror although records are missing. Default: False.
    """

    fence: bool | Unset = True
    wait_seconds: float | Unset = 20.0
    force: bool | Unset = False

    def to_dict(self) -> dict[str, Any]:
        fence = self.fence

        wait_seconds = self.wait_seconds

        force = self.force

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if fence is not UNSET:
            field_dict["fence"] = fence
        if wait_seconds is not UNSET:
            field_dict["wait_seconds"] = wait_seconds
        if force is not UNSET:
            field_dict["force"] = force

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        fence = d.pop("fence", UNSET)

        wait_seconds = d.pop("wait_seconds", UNSET)

        force = d.pop("force", UNSET)

        promotion_in = cls(
            fence=fence,
            wait_seconds=wait_seconds,
            force=force,
        )

        return promotion_in
