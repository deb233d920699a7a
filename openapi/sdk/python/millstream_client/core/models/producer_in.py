from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="ProducerIn")


@_attrs_define
class ProducerIn:
    """An idempotent producer, with the sequence of the first record.

    The next ones follow. A new epoch starts at 0.

        Attributes:
            id (str):
            epoch (int):
            sequence (int):
    """

    id: str
    epoch: int
    sequence: int

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        epoch = self.epoch

        sequence = self.sequence

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "id": id,
                "epoch": epoch,
                "sequence": sequence,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        epoch = d.pop("epoch")

        sequence = d.pop("sequence")

        producer_in = cls(
            id=id,
            epoch=epoch,
            sequence=sequence,
        )

        return producer_in
