from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="CommitOut")


@_attrs_define
class CommitOut:
    """Progress of a commit: repeat the call until it is `done`.

    Attributes:
        done (bool):
        records (int): Number of records appended so far.
        staged (list[str]): Staged entries of the batch.
    """

    done: bool
    records: int
    staged: list[str]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        done = self.done

        records = self.records

        staged = self.staged

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "done": done,
                "records": records,
                "staged": staged,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        done = d.pop("done")

        records = d.pop("records")

        staged = cast(list[str], d.pop("staged"))

        commit_out = cls(
            done=done,
            records=records,
            staged=staged,
        )

        commit_out.additional_properties = d
        return commit_out

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
