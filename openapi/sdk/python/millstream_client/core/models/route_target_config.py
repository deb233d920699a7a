from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.spread_by import SpreadBy
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.credentials_config import CredentialsConfig
    from ..models.route_target_config_headers import RouteTargetConfigHeaders
    from ..models.spread_member_config import SpreadMemberConfig


T = TypeVar("T", bound="RouteTargetConfig")


@_attrs_define
class RouteTargetConfig:
    """Queue, stream, topic, spread or URL that receives the messages. Exactly one is given.

    Only a spread has `by`. The other fields are those of a webhook, and only a URL has them.

        Attributes:
            queue (None | str | Unset):
            stream (None | str | Unset):
            topic (None | str | Unset): Another topic, whose routes match the message again. A message passes at most 8
                topics; a route that leads back to its topic is refused with `route_cycle`.
            url (None | str | Unset): An https URL that messages are posted to, signed, as by a webhook. They wait in a
                queue of the route's own; the queue and the webhook are named `route:<topic>.<route>`, or
                `route:<topic>:<route>` if the topic's name has a dot.
            ordered (bool | None | Unset): Of a URL. Post the messages of one key one after another, in order: each when the
                one before was delivered or dead-lettered. Messages need a key. Immutable; null: false.
            spread (list[SpreadMemberConfig] | None | Unset): 2 to 32 queues, streams or topics, of which each message goes
                to one, by consistent hashing: a new member takes messages from the others alone, and those of a removed one go
                to all others.
            by (None | SpreadBy | Unset): Of a spread. `key`: copies with one key, as `key` makes it, go to one member.
                `subject`: messages of one subject do. `random`: by the place of the message in the topic, as one without a key
                or subject. null: `key`.
            headers (None | RouteTargetConfigHeaders | Unset): Of a URL. Headers sent with each delivery. Values are stored
                encrypted and shown as `(secret)`, which keeps a value if it is sent; if omitted, all headers are unchanged.
            credentials (CredentialsConfig | None | Unset): Of a URL. OAuth client with whose access tokens messages are
                posted.
            timeout_seconds (float | None | Unset): Of a URL. Timeout for the complete response, 0.1 to 120 seconds; null:
                15.
            rate (float | None | Unset): Of a URL. Maximum deliveries per second; null: no limit.
            in_flight_max (int | None | Unset): Of a URL. Maximum number of concurrent deliveries; null: 10.
            retry_seconds (list[float] | None | Unset): Of a URL. Delays after the first failed attempt, the second, and so
                on, each ±10 %, after which a message is dead-lettered in the route's queue; null: nine delays, of three days
                together.
            disable_after_seconds (float | None | Unset): Of a URL. Period of consecutive failures after which the webhook
                is disabled; null: 432000.
            log_retention_seconds (float | None | Unset): Of a URL. Time that the log keeps a delivery after its last
                attempt; null: 259200.
    """

    queue: None | str | Unset = UNSET
    stream: None | str | Unset = UNSET
    topic: None | str | Unset = UNSET
    url: None | str | Unset = UNSET
    ordered: bool | None | Unset = UNSET
    spread: list[SpreadMemberConfig] | None | Unset = UNSET
    by: None | SpreadBy | Unset = UNSET
    headers: None | RouteTargetConfigHeaders | Unset = UNSET
    credentials: CredentialsConfig | None | Unset = UNSET
    timeout_seconds: float | None | Unset = UNSET
    rate: float | None | Unset = UNSET
    in_flight_max: int | None | Unset = UNSET
    retry_seconds: list[float] | None | Unset = UNSET
    disable_after_seconds: float | None | Unset = UNSET
    log_retention_seconds: float | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.credentials_config import CredentialsConfig  # noqa: PLC0415
        from ..models.route_target_config_headers import RouteTargetConfigHeaders  # noqa: PLC0415

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

        url: None | str | Unset
        if isinstance(self.url, Unset):
            url = UNSET
        else:
            url = self.url

        ordered: bool | None | Unset
        if isinstance(self.ordered, Unset):
            ordered = UNSET
        else:
            ordered = self.ordered

        spread: list[dict[str, Any]] | None | Unset
        if isinstance(self.spread, Unset):
            spread = UNSET
        elif isinstance(self.spread, list):
            spread = []
            for spread_type_0_item_data in self.spread:
                spread_type_0_item = spread_type_0_item_data.to_dict()
                spread.append(spread_type_0_item)

        else:
            spread = self.spread

        by: None | str | Unset
        if isinstance(self.by, Unset):
            by = UNSET
        elif isinstance(self.by, SpreadBy):
            by = self.by.value
        else:
            by = self.by

        headers: dict[str, Any] | None | Unset
        if isinstance(self.headers, Unset):
            headers = UNSET
        elif isinstance(self.headers, RouteTargetConfigHeaders):
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

        timeout_seconds: float | None | Unset
        if isinstance(self.timeout_seconds, Unset):
            timeout_seconds = UNSET
        else:
            timeout_seconds = self.timeout_seconds

        rate: float | None | Unset
        if isinstance(self.rate, Unset):
            rate = UNSET
        else:
            rate = self.rate

        in_flight_max: int | None | Unset
        if isinstance(self.in_flight_max, Unset):
            in_flight_max = UNSET
        else:
            in_flight_max = self.in_flight_max

        retry_seconds: list[float] | None | Unset
        if isinstance(self.retry_seconds, Unset):
            retry_seconds = UNSET
        elif isinstance(self.retry_seconds, list):
            retry_seconds = self.retry_seconds

        else:
            retry_seconds = self.retry_seconds

        disable_after_seconds: float | None | Unset
        if isinstance(self.disable_after_seconds, Unset):
            disable_after_seconds = UNSET
        else:
            disable_after_seconds = self.disable_after_seconds

        log_retention_seconds: float | None | Unset
        if isinstance(self.log_retention_seconds, Unset):
            log_retention_seconds = UNSET
        else:
            log_retention_seconds = self.log_retention_seconds

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if queue is not UNSET:
            field_dict["queue"] = queue
        if stream is not UNSET:
            field_dict["stream"] = stream
        if topic is not UNSET:
            field_dict["topic"] = topic
        if url is not UNSET:
            field_dict["url"] = url
        if ordered is not UNSET:
            field_dict["ordered"] = ordered
        if spread is not UNSET:
            field_dict["spread"] = spread
        if by is not UNSET:
            field_dict["by"] = by
        if headers is not UNSET:
            field_dict["headers"] = headers
        if credentials is not UNSET:
            field_dict["credentials"] = credentials
        if timeout_seconds is not UNSET:
            field_dict["timeout_seconds"] = timeout_seconds
        if rate is not UNSET:
            field_dict["rate"] = rate
        if in_flight_max is not UNSET:
            field_dict["in_flight_max"] = in_flight_max
        if retry_seconds is not UNSET:
            field_dict["retry_seconds"] = retry_seconds
        if disable_after_seconds is not UNSET:
            field_dict["disable_after_seconds"] = disable_after_seconds
        if log_retention_seconds is not UNSET:
            field_dict["log_retention_seconds"] = log_retention_seconds

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.credentials_config import CredentialsConfig  # noqa: PLC0415
        from ..models.route_target_config_headers import RouteTargetConfigHeaders  # noqa: PLC0415
        from ..models.spread_member_config import SpreadMemberConfig  # noqa: PLC0415

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

        def _parse_url(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        url = _parse_url(d.pop("url", UNSET))

        def _parse_ordered(data: object) -> bool | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(bool | None | Unset, data)

        ordered = _parse_ordered(d.pop("ordered", UNSET))

        def _parse_spread(data: object) -> list[SpreadMemberConfig] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                spread_type_0 = []
                _spread_type_0 = data
                for spread_type_0_item_data in _spread_type_0:
                    spread_type_0_item = SpreadMemberConfig.from_dict(spread_type_0_item_data)

                    spread_type_0.append(spread_type_0_item)

                return spread_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[SpreadMemberConfig] | None | Unset, data)

        spread = _parse_spread(d.pop("spread", UNSET))

        def _parse_by(data: object) -> None | SpreadBy | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                by_type_0 = SpreadBy(data)

                return by_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | SpreadBy | Unset, data)

        by = _parse_by(d.pop("by", UNSET))

        def _parse_headers(data: object) -> None | RouteTargetConfigHeaders | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                headers_type_0 = RouteTargetConfigHeaders.from_dict(data)

                return headers_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | RouteTargetConfigHeaders | Unset, data)

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

        def _parse_timeout_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        timeout_seconds = _parse_timeout_seconds(d.pop("timeout_seconds", UNSET))

        def _parse_rate(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        rate = _parse_rate(d.pop("rate", UNSET))

        def _parse_in_flight_max(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        in_flight_max = _parse_in_flight_max(d.pop("in_flight_max", UNSET))

        def _parse_retry_seconds(data: object) -> list[float] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                retry_seconds_type_0 = cast(list[float], data)

                return retry_seconds_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[float] | None | Unset, data)

        retry_seconds = _parse_retry_seconds(d.pop("retry_seconds", UNSET))

        def _parse_disable_after_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        disable_after_seconds = _parse_disable_after_seconds(d.pop("disable_after_seconds", UNSET))

        def _parse_log_retention_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        log_retention_seconds = _parse_log_retention_seconds(d.pop("log_retention_seconds", UNSET))

        route_target_config = cls(
            queue=queue,
            stream=stream,
            topic=topic,
            url=url,
            ordered=ordered,
            spread=spread,
            by=by,
            headers=headers,
            credentials=credentials,
            timeout_seconds=timeout_seconds,
            rate=rate,
            in_flight_max=in_flight_max,
            retry_seconds=retry_seconds,
            disable_after_seconds=disable_after_seconds,
            log_retention_seconds=log_retention_seconds,
        )

        return route_target_config
