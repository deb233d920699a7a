from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.group_kind import GroupKind
from ..models.start_at import StartAt

if TYPE_CHECKING:
    from ..models.group_shard_out import GroupShardOut
    from ..models.member_out import MemberOut


T = TypeVar("T", bound="GroupDetail")


@_attrs_define
class GroupDetail:
    """A group with its members and shards, as one consistent snapshot.

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
        generation (int):
        members (list[MemberOut]):
        shards (list[GroupShardOut]):
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
    generation: int
    members: list[MemberOut]
    shards: list[GroupShardOut]
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

        generation = self.generation

        members = []
        for members_item_data in self.members:
            members_item = members_item_data.to_dict()
            members.append(members_item)

        shards = []
        for shards_item_data in self.shards:
            shards_item = shards_item_data.to_dict()
            shards.append(shards_item)

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
                "generation": generation,
                "members": members,
                "shards": shards,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.group_shard_out import GroupShardOut  # noqa: PLC0415
        from ..models.member_out import MemberOut  # noqa: PLC0415

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

        generation = d.pop("generation")

        members = []
        _members = d.pop("members")
        for members_item_data in _members:
            members_item = MemberOut.from_dict(members_item_data)

            members.append(members_item)

        shards = []
        _shards = d.pop("shards")
        for shards_item_data in _shards:
            shards_item = GroupShardOut.from_dict(shards_item_data)

            shards.append(shards_item)

        group_detail = cls(
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
            generation=generation,
            members=members,
            shards=shards,
        )

        group_detail.additional_properties = d
        return group_detail

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
