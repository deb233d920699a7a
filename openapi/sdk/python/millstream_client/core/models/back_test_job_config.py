from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="BackTestJobConfig")


@_attrs_define
class BackTestJobConfig:
    """A match, to be evaluated on all messages that a topic has, by a job.

    Attributes:
        match (Any | Unset): A match, or a list of them, of which any takes a message. A match is an object with
            `subject`, `filter` and `where`; all that are given must hold. null: every message. `unmatched`: messages that
            no other live route of the topic takes.
        compare_with (None | str | Unset): Name of a route, whose present match is evaluated too.
        start_time (datetime.datetime | None | Unset): Messages accepted at or after this time; null: from the earliest
            on.
        end_time (datetime.datetime | None | Unset): Messages accepted before this time; null: until now.
        samples_max (int | Unset): Ids of each kind to return at most. Default: 10.
    """

    match: Any | Unset = UNSET
    compare_with: None | str | Unset = UNSET
    start_time: datetime.datetime | None | Unset = UNSET
    end_time: datetime.datetime | None | Unset = UNSET
    samples_max: int | Unset = 10

    def to_dict(self) -> dict[str, Any]:
        match = self.match

        compare_with: None | str | Unset
        if isinstance(self.compare_with, Unset):
            compare_with = UNSET
        else:
            compare_with = self.compare_with

        start_time: None | str | Unset
        if isinstance(self.start_time, Unset):
            start_time = UNSET
        elif isinstance(self.start_time, datetime.datetime):
            start_time = self.start_time.isoformat()
        else:
            start_time = self.start_time

        end_time: None | str | Unset
        if isinstance(self.end_time, Unset):
            end_time = UNSET
        elif isinstance(self.end_time, datetime.datetime):
            end_time = self.end_time.isoformat()
        else:
            end_time = self.end_time

        samples_max = self.samples_max

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if match is not UNSET:
            field_dict["match"] = match
        if compare_with is not UNSET:
            field_dict["compare_with"] = compare_with
        if start_time is not UNSET:
            field_dict["start_time"] = start_time
        if end_time is not UNSET:
            field_dict["end_time"] = end_time
        if samples_max is not UNSET:
            field_dict["samples_max"] = samples_max

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        match = d.pop("match", UNSET)

        def _parse_compare_with(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        compare_with = _parse_compare_with(d.pop("compare_with", UNSET))

        def _parse_start_time(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                start_time_type_0 = datetime.datetime.fromisoformat(data)

                return start_time_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        start_time = _parse_start_time(d.pop("start_time", UNSET))

        def _parse_end_time(data: object) -> datetime.datetime | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                end_time_type_0 = datetime.datetime.fromisoformat(data)

                return end_time_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None | Unset, data)

        end_time = _parse_end_time(d.pop("end_time", UNSET))

        samples_max = d.pop("samples_max", UNSET)

        back_test_job_config = cls(
            match=match,
            compare_with=compare_with,
            start_time=start_time,
            end_time=end_time,
            samples_max=samples_max,
        )

        return back_test_job_config
