from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="SpreadMemberConfig")


@_attrs_define
class SpreadMemberConfig:
    """Queue, stream or topic that receives a share of the messages. Exactly one is given.

    Attributes:
        queue (None | str | Unset):
        stream (None | str | Unset):
        topic (None | str | Unset):
        weight (int | Unset): The member gets messages in proportion to it; at most 1,000. Default: 1.
    """

    queue: None | str | Unset = UNSET
    stream: None | str | Unset = UNSET
    topic: None | str | Unset = UNSET
    weight: int | Unset = 1

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

        topic: None | str | Unset
        if isinstance(self.topic, Unset):
            topic = UNSET
        else:
            topic = self.topic

        weight = self.weight

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if queue is not UNSET:
            field_dict["queue"] = queue
        if stream is not UNSET:
            field_dict["stream"] = stream
        if topic is not UNSET:
            field_dict["topic"] = topic
        if weight is not UNSET:
            field_dict["weight"] = weight

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

        def _parse_topic(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        topic = _parse_topic(d.pop("topic", UNSET))

        weight = d.pop("weight", UNSET)

        spread_member_config = cls(
            queue=queue,
            stream=stream,
            topic=topic,
            weight=weight,
        )

        return spread_member_config
