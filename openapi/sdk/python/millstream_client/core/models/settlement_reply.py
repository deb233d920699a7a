from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.settlement_reply_headers import SettlementReplyHeaders


T = TypeVar("T", bound="SettlementReply")


@_attrs_define
class SettlementReply:
    """A reply that is sent before its delivery is acknowledged.

    Attributes:
        request (str): The `reply_to` of the message.
        body (Any | Unset): A string is stored as UTF-8 text, any other value as compact JSON.
        body_base64 (str | Unset): Bytes in standard base64.
        headers (SettlementReplyHeaders | Unset): Header names (without a leading ':') and text values.
        content_type (str | Unset): Content type of the body. With 'application/json', responses return it as a JSON
            value. Default: ''.
    """

    request: str
    body: Any | Unset = UNSET
    body_base64: str | Unset = UNSET
    headers: SettlementReplyHeaders | Unset = UNSET
    content_type: str | Unset = ""

    def to_dict(self) -> dict[str, Any]:
        request = self.request

        body = self.body

        body_base64 = self.body_base64

        headers: dict[str, Any] | Unset = UNSET
        if not isinstance(self.headers, Unset):
            headers = self.headers.to_dict()

        content_type = self.content_type

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "request": request,
            }
        )
        if body is not UNSET:
            field_dict["body"] = body
        if body_base64 is not UNSET:
            field_dict["body_base64"] = body_base64
        if headers is not UNSET:
            field_dict["headers"] = headers
        if content_type is not UNSET:
            field_dict["content_type"] = content_type

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.settlement_reply_headers import SettlementReplyHeaders  # noqa: PLC0415

        d = dict(src_dict)
        request = d.pop("request")

        body = d.pop("body", UNSET)

        body_base64 = d.pop("body_base64", UNSET)

        _headers = d.pop("headers", UNSET)
        headers: SettlementReplyHeaders | Unset
        if isinstance(_headers, Unset):
            headers = UNSET
        else:
            headers = SettlementReplyHeaders.from_dict(_headers)

        content_type = d.pop("content_type", UNSET)

        settlement_reply = cls(
            request=request,
            body=body,
            body_base64=body_base64,
            headers=headers,
            content_type=content_type,
        )

        return settlement_reply
