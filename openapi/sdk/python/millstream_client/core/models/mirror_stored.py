from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.field_change import FieldChange
    from ..models.mirror_from_out import MirrorFromOut


T = TypeVar("T", bound="MirrorStored")


@_attrs_define
class MirrorStored:
    """A mirror after a PUT, and what the PUT changed.

    Attributes:
        name (str):
        from_ (MirrorFromOut): The deployment to copy from.
        streams (list[str]):
        queues (list[str]):
        groups (bool):
        follow_definitions (bool):
        paused (bool):
        promoted_at (datetime.datetime | None): When it was promoted, since when it copies nothing; null if it was not.
        version (int):
        created_at (datetime.datetime):
        changed_at (datetime.datetime):
        created (bool): False if the object existed.
        dry_run (bool): True if nothing was stored.
        changes (list[FieldChange]): Fields that differ from those before.
    """

    name: str
    from_: MirrorFromOut
    streams: list[str]
    queues: list[str]
    groups: bool
    follow_definitions: bool
    paused: bool
    promoted_at: datetime.datetime | None
    version: int
    created_at: datetime.datetime
    changed_at: datetime.datetime
    created: bool
    dry_run: bool
    changes: list[FieldChange]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        from_ = self.from_.to_dict()

        streams = self.streams

        queues = self.queues

        groups = self.groups

        follow_definitions = self.follow_definitions

        paused = self.paused

        promoted_at: None | str
        if isinstance(self.promoted_at, datetime.datetime):
            promoted_at = self.promoted_at.isoformat()
        else:
            promoted_at = self.promoted_at

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
                "from": from_,
                "streams": streams,
                "queues": queues,
                "groups": groups,
                "follow_definitions": follow_definitions,
                "paused": paused,
                "promoted_at": promoted_at,
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
        from ..models.mirror_from_out import MirrorFromOut  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        from_ = MirrorFromOut.from_dict(d.pop("from"))

        streams = cast(list[str], d.pop("streams"))

        queues = cast(list[str], d.pop("queues"))

        groups = d.pop("groups")

        follow_definitions = d.pop("follow_definitions")

        paused = d.pop("paused")

        def _parse_promoted_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                promoted_at_type_0 = datetime.datetime.fromisoformat(data)

                return promoted_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        promoted_at = _parse_promoted_at(d.pop("promoted_at"))

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

        mirror_stored = cls(
            name=name,
            from_=from_,
            streams=streams,
            queues=queues,
            groups=groups,
            follow_definitions=follow_definitions,
            paused=paused,
            promoted_at=promoted_at,
            version=version,
            created_at=created_at,
            changed_at=changed_at,
            created=created,
            dry_run=dry_run,
            changes=changes,
        )

        mirror_stored.additional_properties = d
        return mirror_stored

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
