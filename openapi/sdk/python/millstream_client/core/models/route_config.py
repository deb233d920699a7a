from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.copy_format import CopyFormat
from ..models.route_failure_policy import RouteFailurePolicy
from ..models.route_mode import RouteMode
from ..models.start_at import StartAt
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.route_config_tags import RouteConfigTags
    from ..models.route_target_config import RouteTargetConfig
    from ..models.transform_config import TransformConfig


T = TypeVar("T", bound="RouteConfig")


@_attrs_define
class RouteConfig:
    """The complete configuration of a route; omitted fields take their default.

    Attributes:
        target (RouteTargetConfig): Queue, stream, topic, spread or URL that receives the messages. Exactly one is
            given.

            Only a spread has `by`. The other fields are those of a webhook, and only a URL has them.
        match (Any | Unset): A match, or a list of them, of which any takes a message. A match is an object with
            `subject`, `filter` and `where`; all that are given must hold. null: every message. `unmatched`: messages that
            no other live route of the topic takes.
        transform (None | TransformConfig | Unset):
        format_ (CopyFormat | Unset): Format of a route's copies.
        key (Any | Unset): Key of the copies, which is the message group in a FIFO queue: `key`, `subject`, a JSON
            Pointer such as `/body/customer`, or `{"constant": "x"}`. null: the key of the message.
        delay_seconds (float | Unset): Of messages in a standard queue, or for a URL. Default: 0.0.
        ttl_seconds (float | Unset): Of messages in a queue, or for a URL; 0: the queue's default. Default: 0.0.
        on_failure (RouteFailurePolicy | Unset): Handling of messages while the target does not exist.

            A message that the target never accepts goes to the route's dead-letter queue, or is dropped without one.
        dead_letter_queue (None | str | Unset): Queue for messages that the target never accepts: too large, without a
            group for a FIFO queue, or without a value that a strict transform needs. null: they are counted as dropped.
        mode (RouteMode | Unset): Use of the messages that a route takes.
        start (StartAt | Unset): Start position of a reader that has read nothing.
        start_time (datetime.datetime | None | Unset): With `time`: start with the first message that was accepted at or
            after this time.
        tags (RouteConfigTags | Unset): Up to 50 user-defined tags.
    """

    target: RouteTargetConfig
    match: Any | Unset = UNSET
    transform: None | TransformConfig | Unset = UNSET
    format_: CopyFormat | Unset = UNSET
    key: Any | Unset = UNSET
    delay_seconds: float | Unset = 0.0
    ttl_seconds: float | Unset = 0.0
    on_failure: RouteFailurePolicy | Unset = UNSET
    dead_letter_queue: None | str | Unset = UNSET
    mode: RouteMode | Unset = UNSET
    start: StartAt | Unset = UNSET
    start_time: datetime.datetime | None | Unset = UNSET
    tags: RouteConfigTags | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.transform_config import TransformConfig  # noqa: PLC0415

        target = self.target.to_dict()

        match = self.match

        transform: dict[str, Any] | None | Unset
        if isinstance(self.transform, Unset):
            transform = UNSET
        elif isinstance(self.transform, TransformConfig):
            transform = self.transform.to_dict()
        else:
            transform = self.transform

        format_: str | Unset = UNSET
        if not isinstance(self.format_, Unset):
            format_ = self.format_.value

        key = self.key

        delay_seconds = self.delay_seconds

        ttl_seconds = self.ttl_seconds

        on_failure: str | Unset = UNSET
        if not isinstance(self.on_failure, Unset):
            on_failure = self.on_failure.value

        dead_letter_queue: None | str | Unset
        if isinstance(self.dead_letter_queue, Unset):
            dead_letter_queue = UNSET
        else:
            dead_letter_queue = self.dead_letter_queue

        mode: str | Unset = UNSET
        if not isinstance(self.mode, Unset):
            mode = self.mode.value

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

        tags: dict[str, Any] | Unset = UNSET
        if not isinstance(self.tags, Unset):
            tags = self.tags.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "target": target,
            }
        )
        if match is not UNSET:
            field_dict["match"] = match
        if transform is not UNSET:
            field_dict["transform"] = transform
        if format_ is not UNSET:
            field_dict["format"] = format_
        if key is not UNSET:
            field_dict["key"] = key
        if delay_seconds is not UNSET:
            field_dict["delay_seconds"] = delay_seconds
        if ttl_seconds is not UNSET:
            field_dict["ttl_seconds"] = ttl_seconds
        if on_failure is not UNSET:
            field_dict["on_failure"] = on_failure
        if dead_letter_queue is not UNSET:
            field_dict["dead_letter_queue"] = dead_letter_queue
        if mode is not UNSET:
            field_dict["mode"] = mode
        if start is not UNSET:
            field_dict["start"] = start
        if start_time is not UNSET:
            field_dict["start_time"] = start_time
        if tags is not UNSET:
            field_dict["tags"] = tags

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.route_config_tags import RouteConfigTags  # noqa: PLC0415
        from ..models.route_target_config import RouteTargetConfig  # noqa: PLC0415
        from ..models.transform_config import TransformConfig  # noqa: PLC0415

        d = dict(src_dict)
        target = RouteTargetConfig.from_dict(d.pop("target"))

        match = d.pop("match", UNSET)

        def _parse_transform(data: object) -> None | TransformConfig | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                transform_type_0 = TransformConfig.from_dict(data)

                return transform_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | TransformConfig | Unset, data)

        transform = _parse_transform(d.pop("transform", UNSET))

        _format_ = d.pop("format", UNSET)
        format_: CopyFormat | Unset
        if isinstance(_format_, Unset):
            format_ = UNSET
        else:
            format_ = CopyFormat(_format_)

        key = d.pop("key", UNSET)

        delay_seconds = d.pop("delay_seconds", UNSET)

        ttl_seconds = d.pop("ttl_seconds", UNSET)

        _on_failure = d.pop("on_failure", UNSET)
        on_failure: RouteFailurePolicy | Unset
        if isinstance(_on_failure, Unset):
            on_failure = UNSET
        else:
            on_failure = RouteFailurePolicy(_on_failure)

        def _parse_dead_letter_queue(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        dead_letter_queue = _parse_dead_letter_queue(d.pop("dead_letter_queue", UNSET))

        _mode = d.pop("mode", UNSET)
        mode: RouteMode | Unset
        if isinstance(_mode, Unset):
            mode = UNSET
        else:
            mode = RouteMode(_mode)

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

        _tags = d.pop("tags", UNSET)
        tags: RouteConfigTags | Unset
        if isinstance(_tags, Unset):
            tags = UNSET
        else:
            tags = RouteConfigTags.from_dict(_tags)

        route_config = cls(
            target=target,
            match=match,
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
            tags=tags,
        )

        return route_config
