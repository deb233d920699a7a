from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.body_format import BodyFormat
from ..models.on_failure import OnFailure
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.credentials_config import CredentialsConfig
    from ..models.field_change import FieldChange
    from ..models.webhook_health import WebhookHealth


T = TypeVar("T", bound="WebhookStored")


@_attrs_define
class WebhookStored:
    """A webhook after a PUT; its signing secret, if it was created, is not returned again.

    Attributes:
        name (str):
        source (str):
        url (str):
        header_names (list[str]):
        credentials (CredentialsConfig | None):
        format_ (BodyFormat): Format of a delivery's request body.

            body: the message's own bytes and content type, other properties in headers. envelope: JSON with everything.
        timeout_seconds (float):
        rate (float | None):
        in_flight_max (int):
        retry_seconds (list[float]):
        on_failure (OnFailure): Handling of a group's record after its last retry.

            block: its shard waits, and it is retried indefinitely. dead_letter: it is sent to a queue, and its shard
            continues.
        dead_letter_queue (None | str):
        disable_after_seconds (float):
        log_retention_seconds (float):
        match (Any):
        paused (bool): Deliveries are paused by the owner.
        version (int):
        created_at (datetime.datetime):
        changed_at (datetime.datetime):
        health (WebhookHealth): Health of a webhook, as reported by its deliverer within the last seconds.

            `state`: `active`, `failing` since its last success, `paused` by its owner, or `disabled` by the service, for
            the
            `disabled_reason`: it was `failing` for too long, its receiver is `gone` (410), or its configuration is
            `invalid`.
        created (bool): False if the object existed.
        dry_run (bool): True if nothing was stored.
        changes (list[FieldChange]): Fields that differ from those before.
        secret (None | str):
        in_force (bool): No request is sent by the former configuration any more. False: a deliverer did not confirm
            that in time; it will within seconds.
        enabled (bool | Unset): The opposite of `paused`.
    """

    name: str
    source: str
    url: str
    header_names: list[str]
    credentials: CredentialsConfig | None
    format_: BodyFormat
    timeout_seconds: float
    rate: float | None
    in_flight_max: int
    retry_seconds: list[float]
    on_failure: OnFailure
    dead_letter_queue: None | str
    disable_after_seconds: float
    log_retention_seconds: float
    match: Any
    paused: bool
    version: int
    created_at: datetime.datetime
    changed_at: datetime.datetime
    health: WebhookHealth
    created: bool
    dry_run: bool
    changes: list[FieldChange]
    secret: None | str
    in_force: bool
    enabled: bool | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.credentials_config import CredentialsConfig  # noqa: PLC0415

        name = self.name

        source = self.source

        url = self.url

        header_names = self.header_names

        credentials: dict[str, Any] | None
        if isinstance(self.credentials, CredentialsConfig):
            credentials = self.credentials.to_dict()
        else:
            credentials = self.credentials

        format_ = self.format_.value

        timeout_seconds = self.timeout_seconds

        rate: float | None
        rate = self.rate

        in_flight_max = self.in_flight_max

        retry_seconds = self.retry_seconds

        on_failure = self.on_failure.value

        dead_letter_queue: None | str
        dead_letter_queue = self.dead_letter_queue

        disable_after_seconds = self.disable_after_seconds

        log_retention_seconds = self.log_retention_seconds

        match = self.match

        paused = self.paused

        version = self.version

        created_at = self.created_at.isoformat()

        changed_at = self.changed_at.isoformat()

        health = self.health.to_dict()

        created = self.created

        dry_run = self.dry_run

        changes = []
        for changes_item_data in self.changes:
            changes_item = changes_item_data.to_dict()
            changes.append(changes_item)

        secret: None | str
        secret = self.secret

        in_force = self.in_force

        enabled = self.enabled

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "name": name,
                "source": source,
                "url": url,
                "header_names": header_names,
                "credentials": credentials,
                "format": format_,
                "timeout_seconds": timeout_seconds,
                "rate": rate,
                "in_flight_max": in_flight_max,
                "retry_seconds": retry_seconds,
                "on_failure": on_failure,
                "dead_letter_queue": dead_letter_queue,
                "disable_after_seconds": disable_after_seconds,
                "log_retention_seconds": log_retention_seconds,
                "match": match,
                "paused": paused,
                "version": version,
                "created_at": created_at,
                "changed_at": changed_at,
                "health": health,
                "created": created,
                "dry_run": dry_run,
                "changes": changes,
                "secret": secret,
                "in_force": in_force,
            }
        )
        if enabled is not UNSET:
            field_dict["enabled"] = enabled

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.credentials_config import CredentialsConfig  # noqa: PLC0415
        from ..models.field_change import FieldChange  # noqa: PLC0415
        from ..models.webhook_health import WebhookHealth  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        source = d.pop("source")

        url = d.pop("url")

        header_names = cast(list[str], d.pop("header_names"))

        def _parse_credentials(data: object) -> CredentialsConfig | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                credentials_type_0 = CredentialsConfig.from_dict(data)

                return credentials_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(CredentialsConfig | None, data)

        credentials = _parse_credentials(d.pop("credentials"))

        format_ = BodyFormat(d.pop("format"))

        timeout_seconds = d.pop("timeout_seconds")

        def _parse_rate(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        rate = _parse_rate(d.pop("rate"))

        in_flight_max = d.pop("in_flight_max")

        retry_seconds = cast(list[float], d.pop("retry_seconds"))

        on_failure = OnFailure(d.pop("on_failure"))

        def _parse_dead_letter_queue(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        dead_letter_queue = _parse_dead_letter_queue(d.pop("dead_letter_queue"))

        disable_after_seconds = d.pop("disable_after_seconds")

        log_retention_seconds = d.pop("log_retention_seconds")

        match = d.pop("match")

        paused = d.pop("paused")

        version = d.pop("version")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        changed_at = datetime.datetime.fromisoformat(d.pop("changed_at"))

        health = WebhookHealth.from_dict(d.pop("health"))

        created = d.pop("created")

        dry_run = d.pop("dry_run")

        changes = []
        _changes = d.pop("changes")
        for changes_item_data in _changes:
            changes_item = FieldChange.from_dict(changes_item_data)

            changes.append(changes_item)

        def _parse_secret(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        secret = _parse_secret(d.pop("secret"))

        in_force = d.pop("in_force")

        enabled = d.pop("enabled", UNSET)

        webhook_stored = cls(
            name=name,
            source=source,
            url=url,
            header_names=header_names,
            credentials=credentials,
            format_=format_,
            timeout_seconds=timeout_seconds,
            rate=rate,
            in_flight_max=in_flight_max,
            retry_seconds=retry_seconds,
            on_failure=on_failure,
            dead_letter_queue=dead_letter_queue,
            disable_after_seconds=disable_after_seconds,
            log_retention_seconds=log_retention_seconds,
            match=match,
            paused=paused,
            version=version,
            created_at=created_at,
            changed_at=changed_at,
            health=health,
            created=created,
            dry_run=dry_run,
            changes=changes,
            secret=secret,
            in_force=in_force,
            enabled=enabled,
        )

        webhook_stored.additional_properties = d
        return webhook_stored

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
