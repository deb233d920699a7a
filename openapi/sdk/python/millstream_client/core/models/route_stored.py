from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.copy_format import CopyFormat
from ..models.route_failure_policy import RouteFailurePolicy
from ..models.route_mode import RouteMode
from ..models.route_stored_cost import RouteStoredCost
from ..models.start_at import StartAt
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.field_change import FieldChange
    from ..models.route_stored_tags import RouteStoredTags
    from ..models.route_target_out import RouteTargetOut
    from ..models.transform_config import TransformConfig


T = TypeVar("T", bound="RouteStored")


@_attrs_define
class RouteStored:
    """A route after a PUT, and what the PUT changed.

    Attributes:
        name (str):
        topic (str):
        match (Any): A match, or a list of them, of which any takes a message. A match is an object with `subject`,
            `filter` and `where`; all that are given must hold. null: every message. `unmatched`: messages that no other
            live route of the topic takes.
        target (RouteTargetOut): Target of a route. Another target has none of the fields of a URL.
        transform (None | TransformConfig):
        format_ (CopyFormat): Format of a route's copies.
        key (Any): Key of the copies, which is the message group in a FIFO queue: `key`, `subject`, a JSON Pointer such
            as `/body/customer`, or `{"constant": "x"}`. null: the key of the message.
        delay_seconds (float):
        ttl_seconds (float):
        on_failure (RouteFailurePolicy): Handling of messages while the target does not exist.

            A message that the target never accepts goes to the route's dead-letter queue, or is dropped without one.
        dead_letter_queue (None | str):
        mode (RouteMode): Use of the messages that a route takes.
        start (StartAt): Start position of a reader that has read nothing.
        start_time (datetime.datetime | None):
        paused (bool):
        tags (RouteStoredTags):
        number (int): Number of the revision. A change of match, target, transform, format, key or mode begins another
            one; the former one still delivers what was accepted for it.
        cost (RouteStoredCost): `indexed`: an index finds the route. `scanned`: its match is evaluated for each message
            of the topic.
        version (int):
        created_at (datetime.datetime):
        changed_at (datetime.datetime):
        created (bool): False if the object existed.
        dry_run (bool): True if nothing was stored.
        changes (list[FieldChange]): Fields that differ from those before.
        secret (None | str | Unset): Signing secret of a new URL, in the format of Standard Webhooks; it is not returned
            again.
        in_force (bool | Unset): No request is sent to a URL by its former settings any more. False: a deliverer did not
            confirm that in time; it will within seconds. Default: True.
    """

    name: str
    topic: str
    match: Any
    target: RouteTargetOut
    transform: None | TransformConfig
    format_: CopyFormat
    key: Any
    delay_seconds: float
    ttl_seconds: float
    on_failure: RouteFailurePolicy
    dead_letter_queue: None | str
    mode: RouteMode
    start: StartAt
    start_time: datetime.datetime | None
    paused: bool
    tags: RouteStoredTags
    number: int
    cost: RouteStoredCost
    version: int
    created_at: datetime.datetime
    changed_at: datetime.datetime
    created: bool
    dry_run: bool
    changes: list[FieldChange]
    secret: None | str | Unset = UNSET
    in_force: bool | Unset = True
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.transform_config import TransformConfig  # noqa: PLC0415

        name = self.name

        topic = self.topic

        match = self.match

        target = self.target.to_dict()

        transform: dict[str, Any] | None
        if isinstance(self.transform, TransformConfig):
            transform = self.transform.to_dict()
        else:
            transform = self.transform

        format_ = self.format_.value

        key = self.key

        delay_seconds = self.delay_seconds

        ttl_seconds = self.ttl_seconds

        on_failure = self.on_failure.value

        dead_letter_queue: None | str
        dead_letter_queue = self.dead_letter_queue

        mode = self.mode.value

        start = self.start.value

        start_time: None | str
        if isinstance(self.start_time, datetime.datetime):
            start_time = self.start_time.isoformat()
        else:
            start_time = self.start_time

        paused = self.paused

        tags = self.tags.to_dict()

        number = self.number

        cost = self.cost.value

        version = self.version

        created_at = self.created_at.isoformat()

        changed_at = self.changed_at.isoformat()

        created = self.created

        dry_run = self.dry_run

        changes = []
        for changes_item_data in self.changes:
            changes_item = changes_item_data.to_dict()
            changes.append(changes_item)

        secret: None | str | Unset
        if isinstance(self.secret, Unset):
            secret = UNSET
        else:
            secret = self.secret

        in_force = self.in_force

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "topic": topic,
                "match": match,
                "target": target,
                "transform": transform,
                "format": format_,
                "key": key,
                "delay_seconds": delay_seconds,
                "ttl_seconds": ttl_seconds,
                "on_failure": on_failure,
                "dead_letter_queue": dead_letter_queue,
                "mode": mode,
                "start": start,
                "start_time": start_time,
                "paused": paused,
                "tags": tags,
                "number": number,
                "cost": cost,
                "version": version,
                "created_at": created_at,
                "changed_at": changed_at,
                "created": created,
                "dry_run": dry_run,
                "changes": changes,
            }
        )
        if secret is not UNSET:
            field_dict["secret"] = secret
        if in_force is not UNSET:
            field_dict["in_force"] = in_force

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.field_change import FieldChange  # noqa: PLC0415
        from ..models.route_stored_tags import RouteStoredTags  # noqa: PLC0415
        from ..models.route_target_out import RouteTargetOut  # noqa: PLC0415
        from ..models.transform_config import TransformConfig  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        topic = d.pop("topic")

        match = d.pop("match")

        target = RouteTargetOut.from_dict(d.pop("target"))

        def _parse_transform(data: object) -> None | TransformConfig:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                transform_type_0 = TransformConfig.from_dict(data)

                return transform_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | TransformConfig, data)

        transform = _parse_transform(d.pop("transform"))

        format_ = CopyFormat(d.pop("format"))

        key = d.pop("key")

        delay_seconds = d.pop("delay_seconds")

        ttl_seconds = d.pop("ttl_seconds")

        on_failure = RouteFailurePolicy(d.pop("on_failure"))

        def _parse_dead_letter_queue(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        dead_letter_queue = _parse_dead_letter_queue(d.pop("dead_letter_queue"))

        mode = RouteMode(d.pop("mode"))

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

        paused = d.pop("paused")

        tags = RouteStoredTags.from_dict(d.pop("tags"))

        number = d.pop("number")

        cost = RouteStoredCost(d.pop("cost"))

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

        def _parse_secret(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        secret = _parse_secret(d.pop("secret", UNSET))

        in_force = d.pop("in_force", UNSET)

        route_stored = cls(
            name=name,
            topic=topic,
            match=match,
            target=target,
            transform=transform,
            format_=format_,
            key=key,
            delay_seconds=delay_seconds,
            ttl_seconds=ttl_seconds,
            on_failure=on_failure,
            dead_letter_queue=dead_letter_queue,
            mode=mode,
            start=start,
            start_time=start_time,
            paused=paused,
            tags=tags,
            number=number,
            cost=cost,
            version=version,
            created_at=created_at,
            changed_at=changed_at,
            created=created,
            dry_run=dry_run,
            changes=changes,
            secret=secret,
            in_force=in_force,
        )

        route_stored.additional_properties = d
        return route_stored

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
