from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="DeadLettersConfig")


@_attrs_define
class DeadLettersConfig:
    """The dead-letter queue.

    A message moves to it at the receive after `receives_max` unsuccessful ones.

        Attributes:
            queue (str):
            receives_max (int):
    """

    queue: str
    receives_max: int

    def to_dict(self) -> dict[str, Any]:
        queue = self.queue

        receives_max = self.receives_max

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "queue": queue,
                "receives_max": receives_max,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        queue = d.pop("queue")

        receives_max = d.pop("receives_max")

        dead_letters_config = cls(
            queue=queue,
            receives_max=receives_max,
        )

        return dead_letters_config
