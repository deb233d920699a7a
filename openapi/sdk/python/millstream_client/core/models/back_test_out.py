from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.back_test_out_failed_by_path import BackTestOutFailedByPath
    from ..models.back_test_samples import BackTestSamples


T = TypeVar("T", bound="BackTestOut")


@_attrs_define
class BackTestOut:
    """Messages that a match takes, of those that were evaluated.

    Attributes:
        evaluated (int):
        matched (int):
        gained (int | None): Taken by the match, and not by the route to compare with.
        lost (int | None): Taken by the route to compare with, and not by the match.
        failed_by_path (BackTestOutFailedByPath): Messages that fail a condition, by its path; most first.
        samples (BackTestSamples): Ids of the first messages of each kind.
        complete (bool): False if the range has, or had, more messages than were evaluated.
    """

    evaluated: int
    matched: int
    gained: int | None
    lost: int | None
    failed_by_path: BackTestOutFailedByPath
    samples: BackTestSamples
    complete: bool
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        evaluated = self.evaluated

        matched = self.matched

        gained: int | None
        gained = self.gained

        lost: int | None
        lost = self.lost

        failed_by_path = self.failed_by_path.to_dict()

        samples = self.samples.to_dict()

        complete = self.complete

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "evaluated": evaluated,
                "matched": matched,
                "gained": gained,
                "lost": lost,
                "failed_by_path": failed_by_path,
                "samples": samples,
                "complete": complete,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.back_test_out_failed_by_path import BackTestOutFailedByPath  # noqa: PLC0415
        from ..models.back_test_samples import BackTestSamples  # noqa: PLC0415

        d = dict(src_dict)
        evaluated = d.pop("evaluated")

        matched = d.pop("matched")

        def _parse_gained(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        gained = _parse_gained(d.pop("gained"))

        def _parse_lost(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        lost = _parse_lost(d.pop("lost"))

        failed_by_path = BackTestOutFailedByPath.from_dict(d.pop("failed_by_path"))

        samples = BackTestSamples.from_dict(d.pop("samples"))

        complete = d.pop("complete")

        back_test_out = cls(
            evaluated=evaluated,
            matched=matched,
            gained=gained,
            lost=lost,
            failed_by_path=failed_by_path,
            samples=samples,
            complete=complete,
        )

        back_test_out.additional_properties = d
        return back_test_out

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
