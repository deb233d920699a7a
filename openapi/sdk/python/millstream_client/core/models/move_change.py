from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.move_state import MoveState

T = TypeVar("T", bound="MoveChange")


@_attrs_define
class MoveChange:
    """Cancellation of a running move. Messages already moved stay where they are.

    Attributes:
        state (MoveState): State of a move job.
    """

    state: MoveState

    def to_dict(self) -> dict[str, Any]:
        state = self.state.value

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "state": state,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        state = MoveState(d.pop("state"))

        move_change = cls(
            state=state,
        )

        return move_change
