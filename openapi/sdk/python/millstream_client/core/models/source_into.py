from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="SourceInto")


@_attrs_define
class SourceInto:
    """Queue or stream that receives the events.

    Attributes:
        queue (None | str | Unset):
        stream (None | str | Unset):
        key (None | str | Unset): JSON Pointer into the body, such as `/data/customer`. Its value is the record key, or
            in a queue the message group.
    """

    queue: None | str | Unset = UNSET
    stream: None | str | Unset = UNSET
    key: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        queue: None | str | Unset
        if isinstance(self.queue, Unset):
            queue = UNSET
        else:
            queue = self.queue

        stream: None | str | Unset
        if isinstance(self.stream, Unset):
            stream = UNSET
        else:
            stream = self.stream

        key: None | str | Unset
        if isinstance(self.key, Unset):
            key = UNSET
        else:
            key = self.key

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if queue is not UNSET:
            field_dict["queue"] = queue
        if stream is not UNSET:
            field_dict["stream"] = stream
        if key is not UNSET:
            field_dict["key"] = key

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_queue(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        queue = _parse_queue(d.pop("queue", UNSET))

        def _parse_stream(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        stream = _parse_stream(d.pop("stream", UNSET))

        def _parse_key(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        key = _parse_key(d.pop("key", UNSET))

        source_into = cls(
            queue=queue,
            stream=stream,
            key=key,
        )

        return source_into
