from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.group_kind import GroupKind
from ..models.start_at import StartAt

if TYPE_CHECKING:
    from ..models.field_change import FieldChange


T = TypeVar("T", bound="GroupStored")


@_attrs_define
class GroupStored:
    """A group after a PUT, and what the PUT changed.

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
        created (bool): False if the object existed.
        dry_run (bool): True if nothing was stored.
        changes (list[FieldChange]): Fields that differ from those before.
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
    created: bool
    dry_run: bool
    changes: list[FieldChange]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
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

        created = self.created

        dry_run = self.dry_run

        changes = []
        for changes_item_data in self.changes:
            changes_item = changes_item_data.to_dict()
            changes.append(changes_item)

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
                "created": created,
                "dry_run": dry_run,
                "changes": changes,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.field_change import FieldChange  # noqa: PLC0415

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

        created = d.pop("created")

        dry_run = d.pop("dry_run")

        changes = []
        _changes = d.pop("changes")
        for changes_item_data in _changes:
            changes_item = FieldChange.from_dict(changes_item_data)

            changes.append(changes_item)

        group_stored = cls(
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
            created=created,
            dry_run=dry_run,
            changes=changes,
        )

        group_stored.additional_properties = d
        return group_stored

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
