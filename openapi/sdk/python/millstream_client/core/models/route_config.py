from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.route_failure_policy import RouteFailurePolicy
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.route_config_tags import RouteConfigTags
    from ..models.route_target_config import RouteTargetConfig


T = TypeVar("T", bound="RouteConfig")


@_attrs_define
class RouteConfig:
    """The complete configuration of a route; omitted fields take their default.

    Attributes:
        target (RouteTargetConfig): Queue or stream that receives the messages. Exactly one is given.
        match (Any | Unset): A match, or a list of them, of which any takes a message. A match is an object with
            `subject`, `filter` and `where`; all that are given must hold. null: every message.
        on_failure (RouteFailurePolicy | Unset): Handling of messages while the target does not exist.

            A message that the target never accepts goes to the route's dead-letter queue, or is dropped without one.
        tags (RouteConfigTags | Unset): Up to 50 user-defined tags.
    """

    target: RouteTargetConfig
    match: Any | Unset = UNSET
    on_failure: RouteFailurePolicy | Unset = UNSET
    tags: RouteConfigTags | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        target = self.target.to_dict()

        match = self.match

        on_failure: str | Unset = UNSET
        if not isinstance(self.on_failure, Unset):
            on_failure = self.on_failure.value

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
        if on_failure is not UNSET:
            field_dict["on_failure"] = on_failure
        if tags is not UNSET:
            field_dict["tags"] = tags

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.route_config_tags import RouteConfigTags  # noqa: PLC0415
        from ..models.route_target_config import RouteTargetConfig  # noqa: PLC0415

        d = dict(src_dict)
        target = RouteTargetConfig.from_dict(d.pop("target"))

        match = d.pop("match", UNSET)

        _on_failure = d.pop("on_failure", UNSET)
        on_failure: RouteFailurePolicy | Unset
        if isinstance(_on_failure, Unset):
            on_failure = UNSET
        else:
            on_failure = RouteFailurePolicy(_on_failure)

        _tags = d.pop("tags", UNSET)
        tags: RouteConfigTags | Unset
        if isinstance(_tags, Unset):
            tags = UNSET
        else:
            tags = RouteConfigTags.from_dict(_tags)

        route_config = cls(
            target=target,
            match=match,
            on_failure=on_failure,
            tags=tags,
        )

        return route_config
