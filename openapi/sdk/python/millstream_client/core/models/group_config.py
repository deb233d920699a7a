from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.group_kind import GroupKind
from ..models.start_at import StartAt
from ..types import UNSET, Unset

T = TypeVar("T", bound="GroupConfig")


@_attrs_define
class GroupConfig:
    """The complete configuration of a group. Stream, kind and start are immutable.

    Attributes:
        stream (str):
        kind (GroupKind | Unset): Type of a consumer group.

            `ordered`: members share the shards, one reader for each shard. `simple`: the group only stores offsets.
        start (StartAt | Unset): Start position of a reader that has read nothing.
        start_time (datetime.datetime | None | Unset): With `time`: start with the first record that arrived at or after
            this time.
        session_timeout_seconds (float | Unset): Members without a heartbeat for this long are removed. Default: 30.0.
        static_timeout_seconds (float | Unset): Time without a heartbeat after which a member with an `instance_id` is
            removed. Default: 300.0.
        revoke_timeout_seconds (float | Unset): A revoked shard that is not released within this time is reassigned.
            Default: 60.0.
    """

    stream: str
    kind: GroupKind | Unset = UNSET
    start: StartAt | Unset = UNSET
    start_time: datetime.datetime | None | Unset = UNSET
    session_timeout_seconds: float | Unset = 30.0
    static_timeout_seconds: float | Unset = 300.0
    revoke_timeout_seconds: float | Unset = 60.0

    def to_dict(self) -> dict[str, Any]:
        stream = self.stream

        kind: str | Unset = UNSET
        if not isinstance(self.kind, Unset):
            kind = self.kind.value

        start: str | Unset = UNSET
        if not isinstance(self.start, Unset):
            start = self.start.value

        start_time: None | str | Unset
        if isinstance(self.start_time, Unset):
            start_time = UNSET
        elif isinstance(self.start_time, datetime.datetime):
            start_time = self.start_time.isoformat()
        else:
            start_time = self.start_time

        session_timeout_seconds = self.session_timeout_seconds

        static_timeout_seconds = self.static_timeout_seconds

        revoke_timeout_seconds = self.revoke_timeout_seconds

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "stream": stream,
            }
        )
        if kind is not UNSET:
            field_dict["kind"] = kind
        if start is not UNSET:
            field_dict["start"] = start
        if start_time is not UNSET:
            field_dict["start_time"] = start_time
        if session_timeout_seconds is not UNSET:
            field_dict["session_timeout_seconds"] = session_timeout_seconds
        if static_timeout_seconds is not UNSET:
            field_dict["static_timeout_seconds"] = static_timeout_seconds
        if revoke_timeout_seconds is not UNSET:
            field_dict["revoke_timeout_seconds"] = revoke_timeout_seconds

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        stream = d.pop("stream")

        _kind = d.pop("kind", UNSET)
        kind: GroupKind | Unset
        if isinstance(_kind, Unset):
            kind = UNSET
        else:
            kind = GroupKind(_kind)

        _start = d.pop("start", UNSET)
        start: StartAt | Unset
        if isinstance(_start, Unset):
            start = UNSET
        else:
            start = StartAt(_start)

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

        session_timeout_seconds = d.pop("session_timeout_seconds", UNSET)

        static_timeout_seconds = d.pop("static_timeout_seconds", UNSET)

        revoke_timeout_seconds = d.pop("revoke_timeout_seconds", UNSET)

        group_config = cls(
            stream=stream,
            kind=kind,
            start=start,
            start_time=start_time,
            session_timeout_seconds=session_timeout_seconds,
            static_timeout_seconds=static_timeout_seconds,
            revoke_timeout_seconds=revoke_timeout_seconds,
        )

        return group_config
