from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="DeadLettersConfig")


@_attrs_define
class DeadLettersConfig:
    """The dead-letter queue, or the topic that dead letters are published to.

    A message moves there at the receive after `receives_max` unsuccessful ones. Exactly one of `queue` and `topic` is
    given.

        Attributes:
            receives_max (int):
            queue (None | str | Unset):
            topic (None | str | Unset): Dead letters are published with the name of the queue as their subject, and headers
                that state the reason.
    """

    receives_max: int
    queue: None | str | Unset = UNSET
    topic: None | str | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        receives_max = self.receives_max

        queue: None | str | Unset
        if isinstance(self.queue, Unset):
            queue = UNSET
        else:
            queue = self.queue

        topic: None | str | Unset
        if isinstance(self.topic, Unset):
            topic = UNSET
        else:
            topic = self.topic

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "receives_max": receives_max,
            }
        )
        if queue is not UNSET:
            field_dict["queue"] = queue
        if topic is not UNSET:
            field_dict["topic"] = topic

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        receives_max = d.pop("receives_max")

        def _parse_queue(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        queue = _parse_queue(d.pop("queue", UNSET))

        def _parse_topic(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        topic = _parse_topic(d.pop("topic", UNSET))

        dead_letters_config = cls(
            receives_max=receives_max,
            queue=queue,
            topic=topic,
        )

        return dead_letters_config
