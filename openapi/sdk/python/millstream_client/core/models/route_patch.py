from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.route_failure_policy import RouteFailurePolicy
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.route_patch_tags import RoutePatchTags
    from ..models.route_target_config import RouteTargetConfig


T = TypeVar("T", bound="RoutePatch")


@_attrs_define
class RoutePatch:
    """Changes to a route (a JSON Merge Patch); null resets a field to its default.

    `match` is replaced as a whole.

        Attributes:
            match (Any | Unset):
            target (None | RouteTargetConfig | Unset):
            on_failure (None | RouteFailurePolicy | Unset):
            tags (None | RoutePatchTags | Unset):
    """

    match: Any | Unset = UNSET
    target: None | RouteTargetConfig | Unset = UNSET
    on_failure: None | RouteFailurePolicy | Unset = UNSET
    tags: None | RoutePatchTags | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.route_patch_tags import RoutePatchTags  # noqa: PLC0415
        from ..models.route_target_config import RouteTargetConfig  # noqa: PLC0415

        match = self.match

        target: dict[str, Any] | None | Unset
        if isinstance(self.target, Unset):
            target = UNSET
        elif isinstance(self.target, RouteTargetConfig):
            target = self.target.to_dict()
        else:
            target = self.target

        on_failure: None | str | Unset
        if isinstance(self.on_failure, Unset):
            on_failure = UNSET
        elif isinstance(self.on_failure, RouteFailurePolicy):
            on_failure = self.on_failure.value
        else:
            on_failure = self.on_failure

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
        if on_failure is not UNSET:
            field_dict["on_failure"] = on_failure
        if tags is not UNSET:
            field_dict["tags"] = tags

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.route_patch_tags import RoutePatchTags  # noqa: PLC0415
        from ..models.route_target_config import RouteTargetConfig  # noqa: PLC0415

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
            on_failure=on_failure,
            tags=tags,
        )

        return route_patch
