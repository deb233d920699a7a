from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.origin_outcome import OriginOutcome

if TYPE_CHECKING:
    from ..models.mirror_from_out import MirrorFromOut


T = TypeVar("T", bound="MirrorPromotion")


@_attrs_define
class MirrorPromotion:
    """A mirror after a promotion.

    `promoted_at` is null if the last records could not be copied in time: call again.

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
            origin (OriginOutcome): Effect of a promotion on the origin.
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
    origin: OriginOutcome
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

        origin = self.origin.value

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
                "origin": origin,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
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

        origin = OriginOutcome(d.pop("origin"))

        mirror_promotion = cls(
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
            origin=origin,
        )

        mirror_promotion.additional_properties = d
        return mirror_promotion

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
