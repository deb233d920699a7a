from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.source_into import SourceInto
    from ..models.source_webhook import SourceWebhook


T = TypeVar("T", bound="SourceConfig")


@_attrs_define
class SourceConfig:
    """The complete configuration of a source.

    Attributes:
        webhook (SourceWebhook): Provider of the events, and how its requests are verified.
        into (SourceInto): Queue or stream that receives the events.
        dedup_seconds (float | Unset): Period in which an event that is sent again is recognized by its id. Default:
            259200.0.
    """

    webhook: SourceWebhook
    into: SourceInto
    dedup_seconds: float | Unset = 259200.0

    def to_dict(self) -> dict[str, Any]:
        webhook = self.webhook.to_dict()

        into = self.into.to_dict()

        dedup_seconds = self.dedup_seconds

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "webhook": webhook,
                "into": into,
            }
        )
        if dedup_seconds is not UNSET:
            field_dict["dedup_seconds"] = dedup_seconds

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.source_into import SourceInto  # noqa: PLC0415
        from ..models.source_webhook import SourceWebhook  # noqa: PLC0415

        d = dict(src_dict)
        webhook = SourceWebhook.from_dict(d.pop("webhook"))

        into = SourceInto.from_dict(d.pop("into"))

        dedup_seconds = d.pop("dedup_seconds", UNSET)

        source_config = cls(
            webhook=webhook,
            into=into,
            dedup_seconds=dedup_seconds,
        )

        return source_config
