from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.examined_message import ExaminedMessage


T = TypeVar("T", bound="ExplainRequest")


@_attrs_define
class ExplainRequest:
    """A message that is not published, or the id of one that was. Exactly one is given.

    Attributes:
        message (ExaminedMessage | None | Unset):
        id (None | str | Unset):
        route (None | str | Unset): Explain this route alone.
    """

    message: ExaminedMessage | None | Unset = UNSET
    id: None | str | Unset = UNSET
    route: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.examined_message import ExaminedMessage  # noqa: PLC0415

        message: dict[str, Any] | None | Unset
        if isinstance(self.message, Unset):
            message = UNSET
        elif isinstance(self.message, ExaminedMessage):
            message = self.message.to_dict()
        else:
            message = self.message

        id: None | str | Unset
        if isinstance(self.id, Unset):
            id = UNSET
        else:
            id = self.id

        route: None | str | Unset
        if isinstance(self.route, Unset):
            route = UNSET
        else:
            route = self.route

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if message is not UNSET:
            field_dict["message"] = message
        if id is not UNSET:
            field_dict["id"] = id
        if route is not UNSET:
            field_dict["route"] = route

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.examined_message import ExaminedMessage  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_message(data: object) -> ExaminedMessage | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                message_type_0 = ExaminedMessage.from_dict(data)

                return message_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ExaminedMessage | None | Unset, data)

        message = _parse_message(d.pop("message", UNSET))

        def _parse_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        id = _parse_id(d.pop("id", UNSET))

        def _parse_route(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        route = _parse_route(d.pop("route", UNSET))

        explain_request = cls(
            message=message,
            id=id,
            route=route,
        )

        return explain_request
