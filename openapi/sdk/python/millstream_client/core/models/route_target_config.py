from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="RouteTargetConfig")


@_attrs_define
class RouteTargetConfig:
    """Queue or stream that receives the messages. Exactly one is given.

    Attributes:
        queue (None | str | Unset):
        stream (None | str | Unset):
    """

    queue: None | str | Unset = UNSET
    stream: None | str | Unset = UNSET

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

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if queue is not UNSET:
            field_dict["queue"] = queue
        if stream is not UNSET:
            field_dict["stream"] = stream

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

        route_target_config = cls(
            queue=queue,
            stream=stream,
        )

        return route_target_config
