from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

T = TypeVar("T", bound="StagedCommit")


@_attrs_define
class StagedCommit:
    """A batch of a writer and its staged entries, unless an earlier commit listed them.

    Attributes:
        writer_id (str):
        batch_id (int):
        staged (list[str]):
    """

    writer_id: str
    batch_id: int
    staged: list[str]

    def to_dict(self) -> dict[str, Any]:
        writer_id = self.writer_id

        batch_id = self.batch_id

        staged = self.staged

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "writer_id": writer_id,
                "batch_id": batch_id,
                "staged": staged,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        writer_id = d.pop("writer_id")

        batch_id = d.pop("batch_id")

        staged = cast(list[str], d.pop("staged"))

        staged_commit = cls(
            writer_id=writer_id,
            batch_id=batch_id,
            staged=staged,
        )

        return staged_commit
