from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.source_into_out import SourceIntoOut
    from ..models.source_webhook_out import SourceWebhookOut


T = TypeVar("T", bound="SourceOut")


@_attrs_define
class SourceOut:
    """A source: its configuration and its version, which is the ETag.

    Attributes:
        name (str):
        webhook (SourceWebhookOut): Provider of the events; `secrets` shows how many there are.
        into (SourceIntoOut): Queue or stream that receives the events.
        dedup_seconds (float):
        paused (bool):
        version (int):
        created_at (datetime.datetime):
        changed_at (datetime.datetime):
    """

    name: str
    webhook: SourceWebhookOut
    into: SourceIntoOut
    dedup_seconds: float
    paused: bool
    version: int
    created_at: datetime.datetime
    changed_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        webhook = self.webhook.to_dict()

        into = self.into.to_dict()

        dedup_seconds = self.dedup_seconds

        paused = self.paused

        version = self.version

        created_at = self.created_at.isoformat()

        changed_at = self.changed_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "webhook": webhook,
                "into": into,
                "dedup_seconds": dedup_seconds,
                "paused": paused,
                "version": version,
                "created_at": created_at,
                "changed_at": changed_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.source_into_out import SourceIntoOut  # noqa: PLC0415
        from ..models.source_webhook_out import SourceWebhookOut  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        webhook = SourceWebhookOut.from_dict(d.pop("webhook"))

        into = SourceIntoOut.from_dict(d.pop("into"))

        dedup_seconds = d.pop("dedup_seconds")

        paused = d.pop("paused")

        version = d.pop("version")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        changed_at = datetime.datetime.fromisoformat(d.pop("changed_at"))

        source_out = cls(
            name=name,
            webhook=webhook,
            into=into,
            dedup_seconds=dedup_seconds,
            paused=paused,
            version=version,
            created_at=created_at,
            changed_at=changed_at,
        )

        source_out.additional_properties = d
        return source_out

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
