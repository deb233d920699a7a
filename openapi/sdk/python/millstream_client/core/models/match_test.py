from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.examined_message import ExaminedMessage


T = TypeVar("T", bound="MatchTest")


@_attrs_define
class MatchTest:
    """A match, and a message that is not published.

    Attributes:
        message (ExaminedMessage): A message that is not published: `body` or `body_base64`, and its other fields.
        match (Any | Unset): A match, or a list of them, of which any takes a message. A match is an object with
            `subject`, `filter` and `where`; all that are given must hold. null: every message.
    """

    message: ExaminedMessage
    match: Any | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        message = self.message.to_dict()

        match = self.match

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "message": message,
            }
        )
        if match is not UNSET:
            field_dict["match"] = match

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.examined_message import ExaminedMessage  # noqa: PLC0415

        d = dict(src_dict)
        message = ExaminedMessage.from_dict(d.pop("message"))

        match = d.pop("match", UNSET)

        match_test = cls(
            message=message,
            match=match,
        )

        return match_test
