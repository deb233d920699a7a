from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.body_format import BodyFormat
from ..models.on_failure import OnFailure
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.credentials_config import CredentialsConfig
    from ..models.webhook_config_headers import WebhookConfigHeaders


T = TypeVar("T", bound="WebhookConfig")


@_attrs_define
class WebhookConfig:
    """The complete configuration of a webhook. The source is immutable.

    Attributes:
        source (str): `queue:NAME` for the messages of a queue, or `group:NAME` for the records of a consumer group.
        url (str): An https URL with a host and optionally a path and a query.
        headers (None | Unset | WebhookConfigHeaders): Headers sent with each delivery. Values are stored encrypted and
            never returned; if omitted, they are unchanged.
        credentials (CredentialsConfig | None | Unset):
        format_ (BodyFormat | Unset): Format of a delivery's request body.

            body: the message's own bytes and content type, other properties in headers. envelope: JSON with everything.
        timeout_seconds (float | Unset): Timeout for the complete response: 0.1 to 120 seconds. Default: 15.0.
        rate (float | None | Unset): Maximum deliveries per second; null: no limit.
        in_flight_max (int | Unset): Maximum number of concurrent deliveries. Default: 10.
        retry_seconds (list[float] | Unset): Delays after the first failed attempt, the second, and so on, each ±10 %.
            After the last one, a message is dead-lettered.
        on_failure (OnFailure | Unset): Handling of a group's record after its last retry.

            block: its shard waits, and it is retried indefinitely. dead_letter: it is sent to a queue, and its shard
            continues.
        dead_letter_queue (None | str | Unset):
        disable_after_seconds (float | Unset): Period of consecutive failures after which the webhook is disabled.
            Default: 432000.0.
        log_retention_seconds (float | Unset): Time that the log keeps a delivery after its last attempt. Default:
            259200.0.
        match (Any | Unset): Records of a group to deliver: a match, or a list of matches of which any takes a record,
            as a route of a topic has it. Other records are passed over. null: every record.
        enabled (bool | None | Unset): Replaced by `PUT` and `DELETE …/pause`.
    """

    source: str
    url: str
    headers: None | Unset | WebhookConfigHeaders = UNSET
    credentials: CredentialsConfig | None | Unset = UNSET
    format_: BodyFormat | Unset = UNSET
    timeout_seconds: float | Unset = 15.0
    rate: float | None | Unset = UNSET
    in_flight_max: int | Unset = 10
    retry_seconds: list[float] | Unset = UNSET
    on_failure: OnFailure | Unset = UNSET
    dead_letter_queue: None | str | Unset = UNSET
    disable_after_seconds: float | Unset = 432000.0
    log_retention_seconds: float | Unset = 259200.0
    match: Any | Unset = UNSET
    enabled: bool | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.credentials_config import CredentialsConfig  # noqa: PLC0415
        from ..models.webhook_config_headers import WebhookConfigHeaders  # noqa: PLC0415

        source = self.source

        url = self.url

        headers: dict[str, Any] | None | Unset
        if isinstance(self.headers, Unset):
            headers = UNSET
        elif isinstance(self.headers, WebhookConfigHeaders):
            headers = self.headers.to_dict()
        else:
            headers = self.headers

        credentials: dict[str, Any] | None | Unset
        if isinstance(self.credentials, Unset):
            credentials = UNSET
        elif isinstance(self.credentials, CredentialsConfig):
            credentials = self.credentials.to_dict()
        else:
            credentials = self.credentials

        format_: str | Unset = UNSET
        if not isinstance(self.format_, Unset):
            format_ = self.format_.value

        timeout_seconds = self.timeout_seconds

        rate: float | None | Unset
        if isinstance(self.rate, Unset):
            rate = UNSET
        else:
            rate = self.rate

        in_flight_max = self.in_flight_max

        retry_seconds: list[float] | Unset = UNSET
        if not isinstance(self.retry_seconds, Unset):
            retry_seconds = self.retry_seconds

        on_failure: str | Unset = UNSET
        if not isinstance(self.on_failure, Unset):
            on_failure = self.on_failure.value

        dead_letter_queue: None | str | Unset
        if isinstance(self.dead_letter_queue, Unset):
            dead_letter_queue = UNSET
        else:
            dead_letter_queue = self.dead_letter_queue

        disable_after_seconds = self.disable_after_seconds

        log_retention_seconds = self.log_retention_seconds

        match = self.match

        enabled: bool | None | Unset
        if isinstance(self.enabled, Unset):
            enabled = UNSET
        else:
            enabled = self.enabled

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "source": source,
                "url": url,
            }
        )
        if headers is not UNSET:
            field_dict["headers"] = headers
        if credentials is not UNSET:
            field_dict["credentials"] = credentials
        if format_ is not UNSET:
            field_dict["format"] = format_
        if timeout_seconds is not UNSET:
            field_dict["timeout_seconds"] = timeout_seconds
        if rate is not UNSET:
            field_dict["rate"] = rate
        if in_flight_max is not UNSET:
            field_dict["in_flight_max"] = in_flight_max
        if retry_seconds is not UNSET:
            field_dict["retry_seconds"] = retry_seconds
        if on_failure is not UNSET:
            field_dict["on_failure"] = on_failure
        if dead_letter_queue is not UNSET:
            field_dict["dead_letter_queue"] = dead_letter_queue
        if disable_after_seconds is not UNSET:
            field_dict["disable_after_seconds"] = disable_after_seconds
        if log_retention_seconds is not UNSET:
            field_dict["log_retention_seconds"] = log_retention_seconds
        if match is not UNSET:
            field_dict["match"] = match
        if enabled is not UNSET:
            field_dict["enabled"] = enabled

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.credentials_config import CredentialsConfig  # noqa: PLC0415
        from ..models.webhook_config_headers import WebhookConfigHeaders  # noqa: PLC0415

        d = dict(src_dict)
        source = d.pop("source")

        url = d.pop("url")

        def _parse_headers(data: object) -> None | Unset | WebhookConfigHeaders:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                headers_type_0 = WebhookConfigHeaders.from_dict(data)

                return headers_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | WebhookConfigHeaders, data)

        headers = _parse_headers(d.pop("headers", UNSET))

        def _parse_credentials(data: object) -> CredentialsConfig | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                credentials_type_0 = CredentialsConfig.from_dict(data)

                return credentials_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(CredentialsConfig | None | Unset, data)

        credentials = _parse_credentials(d.pop("credentials", UNSET))

        _format_ = d.pop("format", UNSET)
        format_: BodyFormat | Unset
        if isinstance(_format_, Unset):
            format_ = UNSET
        else:
            format_ = BodyFormat(_format_)

        timeout_seconds = d.pop("timeout_seconds", UNSET)

        def _parse_rate(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        rate = _parse_rate(d.pop("rate", UNSET))

        in_flight_max = d.pop("in_flight_max", UNSET)

        retry_seconds = cast(list[float], d.pop("retry_seconds", UNSET))

        _on_failure = d.pop("on_failure", UNSET)
        on_failure: OnFailure | Unset
        if isinstance(_on_failure, Unset):
            on_failure = UNSET
        else:
            on_failure = OnFailure(_on_failure)

        def _parse_dead_letter_queue(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        dead_letter_queue = _parse_dead_letter_queue(d.pop("dead_letter_queue", UNSET))

        disable_after_seconds = d.pop("disable_after_seconds", UNSET)

        log_retention_seconds = d.pop("log_retention_seconds", UNSET)

        match = d.pop("match", UNSET)

        def _parse_enabled(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        enabled = _parse_enabled(d.pop("enabled", UNSET))

        webhook_config = cls(
            source=source,
            url=url,
            headers=headers,
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
            enabled=enabled,
        )

        return webhook_config
