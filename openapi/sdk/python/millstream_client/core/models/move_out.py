from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.move_state import MoveState

T = TypeVar("T", bound="MoveOut")


@_attrs_define
class MoveOut:
    """A move and its progress.

    Attributes:
        id (str):
        source (str):
        destination (None | str):
        per_second (int | None):
        state (MoveState): State of a move job.
        moved (int):
        to_move (int): Number of messages at the start of the move.
        redrive (bool): Whether the move redrives the queue's own dead letters.
        failure (str): `queue_not_found`, `queue_read_only` for a destination that is a mirror's, or
            `message_source_unknown` for a message that was sent to the dead-letter queue itself; empty unless the move
            failed.
        started_at (datetime.datetime):
    """

    id: str
    source: str
    destination: None | str
    per_second: int | None
    state: MoveState
    moved: int
    to_move: int
    redrive: bool
    failure: str
    started_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        source = self.source

        destination: None | str
        destination = self.destination

        per_second: int | None
        per_second = self.per_second

        state = self.state.value

        moved = self.moved

        to_move = self.to_move

        redrive = self.redrive

        failure = self.failure

        started_at = self.started_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "source": source,
                "destination": destination,
                "per_second": per_second,
                "state": state,
                "moved": moved,
                "to_move": to_move,
                "redrive": redrive,
                "failure": failure,
                "started_at": started_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        source = d.pop("source")

        def _parse_destination(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        destination = _parse_destination(d.pop("destination"))

        def _parse_per_second(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        per_second = _parse_per_second(d.pop("per_second"))

        state = MoveState(d.pop("state"))

        moved = d.pop("moved")

        to_move = d.pop("to_move")

        redrive = d.pop("redrive")

        failure = d.pop("failure")

        started_at = datetime.datetime.fromisoformat(d.pop("started_at"))

        move_out = cls(
            id=id,
            source=source,
            destination=destination,
            per_second=per_second,
            state=state,
            moved=moved,
            to_move=to_move,
            redrive=redrive,
            failure=failure,
            started_at=started_at,
        )

        move_out.additional_properties = d
        return move_out

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
