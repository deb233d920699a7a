from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.committed_out import CommittedOut


T = TypeVar("T", bound="CommittedOffsets")


@_attrs_define
class CommittedOffsets:
    """One result per shard, and the number of failed shards.

    Attributes:
        offsets (list[CommittedOut]):
        failed (int):
    """

    offsets: list[CommittedOut]
    failed: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        offsets = []
        for offsets_item_data in self.offsets:
            offsets_item = offsets_item_data.to_dict()
            offsets.append(offsets_item)

        failed = self.failed

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "offsets": offsets,
                "failed": failed,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.committed_out import CommittedOut  # noqa: PLC0415

        d = dict(src_dict)
        offsets = []
        _offsets = d.pop("offsets")
        for offsets_item_data in _offsets:
            offsets_item = CommittedOut.from_dict(offsets_item_data)

            offsets.append(offsets_item)

        failed = d.pop("failed")

        committed_offsets = cls(
            offsets=offsets,
            failed=failed,
        )

        committed_offsets.additional_properties = d
        return committed_offsets

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
