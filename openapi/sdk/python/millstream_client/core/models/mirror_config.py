from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.mirror_from import MirrorFrom


T = TypeVar("T", bound="MirrorConfig")


@_attrs_define
class MirrorConfig:
    """The complete configuration of a mirror.

    Attributes:
        from_ (MirrorFrom): The deployment to copy from.
        streams (list[str] | Unset): Names of streams to copy, with `*` for anything and `?` for one character.
        queues (list[str] | Unset): Names of queues to copy, likewise. The copies deliver nothing until the mirror is
            promoted.
        groups (bool | Unset): Create the consumer groups that read the streams here as well, and move their offsets
            with those of the other deployment, until they have members here. Default: True.
        follow_definitions (bool | Unset): Apply later changes of the settings of copied streams and groups here as
            well. Otherwise they are copied once. Default: False.
    """

    from_: MirrorFrom
    streams: list[str] | Unset = UNSET
    queues: list[str] | Unset = UNSET
    groups: bool | Unset = True
    follow_definitions: bool | Unset = False

    def to_dict(self) -> dict[str, Any]:
        from_ = self.from_.to_dict()

        streams: list[str] | Unset = UNSET
        if not isinstance(self.streams, Unset):
            streams = self.streams

        queues: list[str] | Unset = UNSET
        if not isinstance(self.queues, Unset):
            queues = self.queues

        groups = self.groups

        follow_definitions = self.follow_definitions

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "from": from_,
            }
        )
        if streams is not UNSET:
            field_dict["streams"] = streams
        if queues is not UNSET:
            field_dict["queues"] = queues
        if groups is not UNSET:
            field_dict["groups"] = groups
        if follow_definitions is not UNSET:
            field_dict["follow_definitions"] = follow_definitions

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.mirror_from import MirrorFrom  # noqa: PLC0415

        d = dict(src_dict)
        from_ = MirrorFrom.from_dict(d.pop("from"))

        streams = cast(list[str], d.pop("streams", UNSET))

        queues = cast(list[str], d.pop("queues", UNSET))

        groups = d.pop("groups", UNSET)

        follow_definitions = d.pop("follow_definitions", UNSET)

        mirror_config = cls(
            from_=from_,
            streams=streams,
            queues=queues,
            groups=groups,
            follow_definitions=follow_definitions,
        )

        return mirror_config
