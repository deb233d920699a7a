from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.effect import Effect
from ..types import UNSET, Unset

T = TypeVar("T", bound="GrantConfig")


@_attrs_define
class GrantConfig:
    """Allows or denies actions on resource names. A deny overrides every allow.

    Attributes:
        effect (Effect): Effect of a grant on the actions and names it matches.
        actions (list[str]): Actions such as `queue:send`; `*` and `?` are wildcards.
        resources (list[str] | Unset): Names of queues, streams and other resources, such as `orders-*`.
    """

    effect: Effect
    actions: list[str]
    resources: list[str] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        effect = self.effect.value

        actions = self.actions

        resources: list[str] | Unset = UNSET
        if not isinstance(self.resources, Unset):
            resources = self.resources

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "effect": effect,
                "actions": actions,
            }
        )
        if resources is not UNSET:
            field_dict["resources"] = resources

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        effect = Effect(d.pop("effect"))

        actions = cast(list[str], d.pop("actions"))

        resources = cast(list[str], d.pop("resources", UNSET))

        grant_config = cls(
            effect=effect,
            actions=actions,
            resources=resources,
        )

        return grant_config
