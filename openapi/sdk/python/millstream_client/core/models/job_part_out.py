from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.job_part_out_counts import JobPartOutCounts


T = TypeVar("T", bound="JobPartOut")


@_attrs_define
class JobPartOut:
    """Progress of a part of a job.

    Attributes:
        part (str):
        position (int): Next position of the part.
        done (bool):
        counts (JobPartOutCounts):
    """

    part: str
    position: int
    done: bool
    counts: JobPartOutCounts
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        part = self.part

        position = self.position

        done = self.done

        counts = self.counts.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "part": part,
                "position": position,
                "done": done,
                "counts": counts,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.job_part_out_counts import JobPartOutCounts  # noqa: PLC0415

        d = dict(src_dict)
        part = d.pop("part")

        position = d.pop("position")

        done = d.pop("done")

        counts = JobPartOutCounts.from_dict(d.pop("counts"))

        job_part_out = cls(
            part=part,
            position=position,
            done=done,
            counts=counts,
        )

        job_part_out.additional_properties = d
        return job_part_out

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
