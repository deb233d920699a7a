from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.group_kind import GroupKind
from ..models.start_at import StartAt

if TYPE_CHECKING:
    from ..models.group_measurement import GroupMeasurement


T = TypeVar("T", bound="ListedGroup")


@_attrs_define
class ListedGroup:
    """A group in a list.

    Attributes:
        name (str):
        stream (str):
        kind (GroupKind): Type of a consumer group.

            `ordered`: members share the shards, one reader for each shard. `simple`: the group only stores offsets.
        start (StartAt): Start position of a reader that has read nothing.
        start_time (datetime.datetime | None):
        session_timeout_seconds (float):
        static_timeout_seconds (float):
        revoke_timeout_seconds (float):
        paused (bool): Members receive no records.
        version (int):
        created_at (datetime.datetime):
        changed_at (datetime.datetime):
        measurement (GroupMeasurement | None): Latest measurement; null if not requested, or not yet measured.
    """

    name: str
    stream: str
    kind: GroupKind
    start: StartAt
    start_time: datetime.datetime | None
    session_timeout_seconds: float
    static_timeout_seconds: float
    revoke_timeout_seconds: float
    paused: bool
    version: int
    created_at: datetime.datetime
    changed_at: datetime.datetime
    measurement: GroupMeasurement | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.group_measurement import GroupMeasurement  # noqa: PLC0415

        name = self.name

        stream = self.stream

        kind = self.kind.value

        start = self.start.value

        start_time: None | str
        if isinstance(self.start_time, datetime.datetime):
            start_time = self.start_time.isoformat()
        else:
            start_time = self.start_time

        session_timeout_seconds = self.session_timeout_seconds

        static_timeout_seconds = self.static_timeout_seconds

        revoke_timeout_seconds = self.revoke_timeout_seconds

        paused = self.paused

        version = self.version

        created_at = self.created_at.isoformat()

        changed_at = self.changed_at.isoformat()

        measurement: dict[str, Any] | None
        if isinstance(self.measurement, GroupMeasurement):
            measurement = self.measurement.to_dict()
        else:
            measurement = self.measurement

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "stream": stream,
                "kind": kind,
                "start": start,
                "start_time": start_time,
                "session_timeout_seconds": session_timeout_seconds,
                "static_timeout_seconds": static_timeout_seconds,
                "revoke_timeout_seconds": revoke_timeout_seconds,
                "paused": paused,
                "version": version,
                "created_at": created_at,
                "changed_at": changed_at,
                "measurement": measurement,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.group_measurement import GroupMeasurement  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        stream = d.pop("stream")

        kind = GroupKind(d.pop("kind"))

        start = StartAt(d.pop("start"))

        def _parse_start_time(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                start_time_type_0 = datetime.datetime.fromisoformat(data)

                return start_time_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        start_time = _parse_start_time(d.pop("start_time"))

        session_timeout_seconds = d.pop("session_timeout_seconds")

        static_timeout_seconds = d.pop("static_timeout_seconds")

        revoke_timeout_seconds = d.pop("revoke_timeout_seconds")

        paused = d.pop("paused")

        version = d.pop("version")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        changed_at = datetime.datetime.fromisoformat(d.pop("changed_at"))

        def _parse_measurement(data: object) -> GroupMeasurement | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                measurement_type_0 = GroupMeasurement.from_dict(data)

                return measurement_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(GroupMeasurement | None, data)

        measurement = _parse_measurement(d.pop("measurement"))

        listed_group = cls(
            name=name,
            stream=stream,
            kind=kind,
            start=start,
            start_time=start_time,
            session_timeout_seconds=session_timeout_seconds,
            static_timeout_seconds=static_timeout_seconds,
            revoke_timeout_seconds=revoke_timeout_seconds,
            paused=paused,
            version=version,
            created_at=created_at,
            changed_at=changed_at,
            measurement=measurement,
        )

        listed_group.additional_properties = d
        return listed_group

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
