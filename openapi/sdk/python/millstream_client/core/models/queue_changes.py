from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.copied_message import CopiedMessage


T = TypeVar("T", bound="QueueChanges")


@_attrs_define
class QueueChanges:
    """Changes of the messages of a queue, or of one of its partitions, since a position.

    `queue_id` and `copy_of` are ids of logs, and offsets those of the log. `partitions`: how many the queue has, also
    those that
    are closed and may have messages.
    `complete` is False if changes since that position are not recorded any more: then all messages have to be copied
    again, and
    changes from `position` on apply to that. `changed` are messages that failed, died, were redriven or edited, as they
    are now.
    `removed` were acknowledged, expired, moved or deleted; so was everything before `purged_before`, except for dead
    letters and
    `changed`.

    Messages from `next_offset` on do not exist yet. `truncated`: further changes follow at once. `fenced`: the queue
    accepts no
    messages, and delivers none. `copy_of`: what it is a copy of itself, up to `copied_to`; None if there is none.

        Attributes:
            queue_id (str):
            position (str):
            complete (bool):
            removed (list[int]):
            changed (list[CopiedMessage]):
            next_offset (int):
            truncated (bool):
            now_ms (int):
            fenced (bool):
            purged_before (int | Unset):  Default: 0.
            copy_of (None | str | Unset):
            copied_to (int | Unset):  Default: 0.
            partitions (int | Unset):  Default: 1.
    """

    queue_id: str
    position: str
    complete: bool
    removed: list[int]
    changed: list[CopiedMessage]
    next_offset: int
    truncated: bool
    now_ms: int
    fenced: bool
    purged_before: int | Unset = 0
    copy_of: None | str | Unset = UNSET
    copied_to: int | Unset = 0
    partitions: int | Unset = 1
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        queue_id = self.queue_id

        position = self.position

        complete = self.complete

        removed = self.removed

        changed = []
        for changed_item_data in self.changed:
            changed_item = changed_item_data.to_dict()
            changed.append(changed_item)

        next_offset = self.next_offset

        truncated = self.truncated

        now_ms = self.now_ms

        fenced = self.fenced

        purged_before = self.purged_before

        copy_of: None | str | Unset
        if isinstance(self.copy_of, Unset):
            copy_of = UNSET
        else:
            copy_of = self.copy_of

        copied_to = self.copied_to

        partitions = self.partitions

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "queue_id": queue_id,
                "position": position,
                "complete": complete,
                "removed": removed,
                "changed": changed,
                "next_offset": next_offset,
                "truncated": truncated,
                "now_ms": now_ms,
                "fenced": fenced,
            }
        )
        if purged_before is not UNSET:
            field_dict["purged_before"] = purged_before
        if copy_of is not UNSET:
            field_dict["copy_of"] = copy_of
        if copied_to is not UNSET:
            field_dict["copied_to"] = copied_to
        if partitions is not UNSET:
            field_dict["partitions"] = partitions

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.copied_message import CopiedMessage  # noqa: PLC0415

        d = dict(src_dict)
        queue_id = d.pop("queue_id")

        position = d.pop("position")

        complete = d.pop("complete")

        removed = cast(list[int], d.pop("removed"))

        changed = []
        _changed = d.pop("changed")
        for changed_item_data in _changed:
            changed_item = CopiedMessage.from_dict(changed_item_data)

            changed.append(changed_item)

        next_offset = d.pop("next_offset")

        truncated = d.pop("truncated")

        now_ms = d.pop("now_ms")

        fenced = d.pop("fenced")

        purged_before = d.pop("purged_before", UNSET)

        def _parse_copy_of(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        copy_of = _parse_copy_of(d.pop("copy_of", UNSET))

        copied_to = d.pop("copied_to", UNSET)

        partitions = d.pop("partitions", UNSET)

        queue_changes = cls(
            queue_id=queue_id,
            position=position,
            complete=complete,
            removed=removed,
            changed=changed,
            next_offset=next_offset,
            truncated=truncated,
            now_ms=now_ms,
            fenced=fenced,
            purged_before=purged_before,
            copy_of=copy_of,
            copied_to=copied_to,
            partitions=partitions,
        )

        queue_changes.additional_properties = d
        return queue_changes

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
