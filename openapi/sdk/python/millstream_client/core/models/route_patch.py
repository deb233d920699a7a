from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.copy_format import CopyFormat
from ..models.route_failure_policy import RouteFailurePolicy
from ..models.route_mode import RouteMode
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.route_patch_tags import RoutePatchTags
    from ..models.route_target_config import RouteTargetConfig
    from ..models.transform_config import TransformConfig


T = TypeVar("T", bound="RoutePatch")


@_attrs_define
class RoutePatch:
    """Changes to a route (a JSON Merge Patch); null resets a field to its default.

    `match`, `target`, `transform` and `key` are replaced as a whole.

        Attributes:
            match (Any | Unset):
            target (None | RouteTargetConfig | Unset):
            transform (None | TransformConfig | Unset):
            format_ (CopyFormat | None | Unset):
            key (Any | Unset): Key of the copies, which is the message group in a FIFO queue: `key`, `subject`, a JSON
                Pointer such as `/body/customer`, or `{"constant": "x"}`. null: the key of the message.
            delay_seconds (float | None | Unset):
            ttl_seconds (float | None | Unset):
            dead_letter_queue (None | str | Unset):
            on_failure (None | RouteFailurePolicy | Unset):
            mode (None | RouteMode | Unset):
            tags (None | RoutePatchTags | Unset):
    """

    match: Any | Unset = UNSET
    target: None | RouteTargetConfig | Unset = UNSET
    transform: None | TransformConfig | Unset = UNSET
    format_: CopyFormat | None | Unset = UNSET
    key: Any | Unset = UNSET
    delay_seconds: float | None | Unset = UNSET
    ttl_seconds: float | None | Unset = UNSET
    dead_letter_queue: None | str | Unset = UNSET
    on_failure: None | RouteFailurePolicy | Unset = UNSET
    mode: None | RouteMode | Unset = UNSET
    tags: None | RoutePatchTags | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.route_patch_tags import RoutePatchTags  # noqa: PLC0415
        from ..models.route_target_config import RouteTargetConfig  # noqa: PLC0415
        from ..models.transform_config import TransformConfig  # noqa: PLC0415

        match = self.match

        target: dict[str, Any] | None | Unset
        if isinstance(self.target, Unset):
            target = UNSET
        elif isinstance(self.target, RouteTargetConfig):
            target = self.target.to_dict()
        else:
            target = self.target

        transform: dict[str, Any] | None | Unset
        if isinstance(self.transform, Unset):
            transform = UNSET
        elif isinstance(self.transform, TransformConfig):
            transform = self.transform.to_dict()
        else:
            transform = self.transform

        format_: None | str | Unset
        if isinstance(self.format_, Unset):
            format_ = UNSET
        elif isinstance(self.format_, CopyFormat):
            format_ = self.format_.value
        else:
            format_ = self.format_

        key = self.key

        delay_seconds: float | None | Unset
        if isinstance(self.delay_seconds, Unset):
            delay_seconds = UNSET
        else:
            delay_seconds = self.delay_seconds

        ttl_seconds: float | None | Unset
        if isinstance(self.ttl_seconds, Unset):
            ttl_seconds = UNSET
        else:
            ttl_seconds = self.ttl_seconds

        dead_letter_queue: None | str | Unset
        if isinstance(self.dead_letter_queue, Unset):
            dead_letter_queue = UNSET
        else:
            dead_letter_queue = self.dead_letter_queue

        on_failure: None | str | Unset
        if isinstance(self.on_failure, Unset):
            on_failure = UNSET
        elif isinstance(self.on_failure, RouteFailurePolicy):
            on_failure = self.on_failure.value
        else:
            on_failure = self.on_failure

        mode: None | str | Unset
        if isinstance(self.mode, Unset):
            mode = UNSET
        elif isinstance(self.mode, RouteMode):
            mode = self.mode.value
        else:
            mode = self.mode

        tags: dict[str, Any] | None | Unset
        if isinstance(self.tags, Unset):
            tags = UNSET
        elif isinstance(self.tags, RoutePatchTags):
            tags = self.tags.to_dict()
        else:
            tags = self.tags

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if match is not UNSET:
            field_dict["match"] = match
        if target is not UNSET:
            field_dict["target"] = target
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
        if dead_letter_queue is not UNSET:
            field_dict["dead_letter_queue"] = dead_letter_queue
        if on_failure is not UNSET:
            field_dict["on_failure"] = on_failure
        if mode is not UNSET:
            field_dict["mode"] = mode
        if tags is not UNSET:
            field_dict["tags"] = tags

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.route_patch_tags import RoutePatchTags  # noqa: PLC0415
        from ..models.route_target_config import RouteTargetConfig  # noqa: PLC0415
        from ..models.transform_config import TransformConfig  # noqa: PLC0415

        d = dict(src_dict)
        match = d.pop("match", UNSET)

        def _parse_target(data: object) -> None | RouteTargetConfig | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                target_type_0 = RouteTargetConfig.from_dict(data)

                return target_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | RouteTargetConfig | Unset, data)

        target = _parse_target(d.pop("target", UNSET))

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

        def _parse_format_(data: object) -> CopyFormat | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                format_type_0 = CopyFormat(data)

                return format_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(CopyFormat | None | Unset, data)

        format_ = _parse_format_(d.pop("format", UNSET))

        key = d.pop("key", UNSET)

        def _parse_delay_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        delay_seconds = _parse_delay_seconds(d.pop("delay_seconds", UNSET))

        def _parse_ttl_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        ttl_seconds = _parse_ttl_seconds(d.pop("ttl_seconds", UNSET))

        def _parse_dead_letter_queue(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        dead_letter_queue = _parse_dead_letter_queue(d.pop("dead_letter_queue", UNSET))

        def _parse_on_failure(data: object) -> None | RouteFailurePolicy | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                on_failure_type_0 = RouteFailurePolicy(data)

                return on_failure_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | RouteFailurePolicy | Unset, data)

        on_failure = _parse_on_failure(d.pop("on_failure", UNSET))

        def _parse_mode(data: object) -> None | RouteMode | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                mode_type_0 = RouteMode(data)

                return mode_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | RouteMode | Unset, data)

        mode = _parse_mode(d.pop("mode", UNSET))

        def _parse_tags(data: object) -> None | RoutePatchTags | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                tags_type_0 = RoutePatchTags.from_dict(data)

                return tags_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | RoutePatchTags | Unset, data)

        tags = _parse_tags(d.pop("tags", UNSET))

        route_patch = cls(
            match=match,
            target=target,
            transform=transform,
            format_=format_,
            key=key,
            delay_seconds=delay_seconds,
            ttl_seconds=ttl_seconds,
            dead_letter_queue=dead_letter_queue,
            on_failure=on_failure,
            mode=mode,
            tags=tags,
        )

        return route_patch
