from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.reply_out import ReplyOut


T = TypeVar("T", bound="RequestReplies")


@_attrs_define
class RequestReplies:
    """Replies to a request, all that it will have.

    `timed_out`: the deadline passed without a reply.

        Attributes:
            request (str):
            replies (list[ReplyOut]):
            complete (bool | Unset):  Default: True.
            timed_out (bool | Unset):  Default: False.
    """

    request: str
    replies: list[ReplyOut]
    complete: bool | Unset = True
    timed_out: bool | Unset = False
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        request = self.request

        replies = []
        for replies_item_data in self.replies:
            replies_item = replies_item_data.to_dict()
            replies.append(replies_item)

        complete = self.complete

        timed_out = self.timed_out

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "request": request,
                "replies": replies,
            }
        )
        if complete is not UNSET:
            field_dict["complete"] = complete
        if timed_out is not UNSET:
            field_dict["timed_out"] = timed_out

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.reply_out import ReplyOut  # noqa: PLC0415

        d = dict(src_dict)
        request = d.pop("request")

        replies = []
        _replies = d.pop("replies")
        for replies_item_data in _replies:
            replies_item = ReplyOut.from_dict(replies_item_data)

            replies.append(replies_item)

        complete = d.pop("complete", UNSET)

        timed_out = d.pop("timed_out", UNSET)

        request_replies = cls(
            request=request,
            replies=replies,
            complete=complete,
            timed_out=timed_out,
        )

        request_replies.additional_properties = d
        return request_replies

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
