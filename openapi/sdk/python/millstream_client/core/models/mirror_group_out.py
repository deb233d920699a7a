from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.mirrored_group_state import MirroredGroupState

T = TypeVar("T", bound="MirrorGroupOut")


@_attrs_define
class MirrorGroupOut:
    """A consumer group of the other deployment, and its copy here.

    Attributes:
        group (str):
        stream (str):
        state (MirroredGroupState): Relation of a group here to that of the origin.
        moved_at (datetime.datetime | None): When its offsets last moved.
        failure (str): Why the last attempt failed; empty if it did not.
    """

    group: str
    stream: str
    state: MirroredGroupState
    moved_at: datetime.datetime | None
    failure: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        group = self.group

        stream = self.stream

        state = self.state.value

        moved_at: None | str
        if isinstance(self.moved_at, datetime.datetime):
            moved_at = self.moved_at.isoformat()
        else:
            moved_at = self.moved_at

        failure = self.failure

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "group": group,
                "stream": stream,
                "state": state,
                "moved_at": moved_at,
                "failure": failure,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        group = d.pop("group")

        stream = d.pop("stream")

        state = MirroredGroupState(d.pop("state"))

        def _parse_moved_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                moved_at_type_0 = datetime.datetime.fromisoformat(data)

                return moved_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        moved_at = _parse_moved_at(d.pop("moved_at"))

        failure = d.pop("failure")

        mirror_group_out = cls(
            group=group,
            stream=stream,
            state=state,
            moved_at=moved_at,
            failure=failure,
        )

        mirror_group_out.additional_properties = d
        return mirror_group_out

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
