"""Parts of a route's configuration that make its copies: target, transform and key."""

from typing import Annotated, Any, ClassVar, Self

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from api.rest.credentials_config import CredentialsConfig, hidden_values
from api.rest.field_map import MappedConfig, domain_value
from api.rest.schema_base import Seconds, in_seconds
from storage.domain import limits
from storage.domain.definitions import HIDDEN_VALUE
from storage.domain.topics.route import RouteTarget
from storage.domain.topics.targets.spread import SpreadBy, SpreadMember
from storage.domain.topics.transform import HeaderTransform, Transform

_TIMEOUT_SECONDS = in_seconds(limits.WEBHOOK_TIMEOUT_MS_DEFAULT)
_DISABLE_AFTER_SECONDS = in_seconds(limits.WEBHOOK_DISABLE_AFTER_MS_DEFAULT)
_LOG_RETENTION_SECONDS = in_seconds(limits.WEBHOOK_LOG_MS_DEFAULT)


def _url_field(description: str) -> Any:
    """Return the description of a field that only a URL has; other targets do not show it."""
    return Field(description=f"Of a URL. {description}", exclude_if=_is_none)


def _is_none(value: object) -> bool:
    return value is None


class SpreadMemberConfig(MappedConfig):
    """Queue, stream or topic that receives a share of the messages. Exactly one is given."""

    domain = SpreadMember

    queue: Annotated[str | None, Field(exclude_if=_is_none)] = None
    stream: Annotated[str | None, Field(exclude_if=_is_none)] = None
    topic: Annotated[str | None, Field(exclude_if=_is_none)] = None
    url: SkipJsonSchema[Annotated[str | None, Field(exclude_if=_is_none)]] = None
    weight: Annotated[
        int,
        Field(
            description=f"The member gets messages in proportion to it; at most {limits.SPREAD_WEIGHT_MAX:,}."
        ),
    ] = 1


class RouteTargetConfig(MappedConfig):
    """Queue, stream, topic, spread or URL that receives the messages. Exactly one is given.

    Only a spread has `by`. The other fields are those of a webhook, and only a URL has them.
    """

    domain = RouteTarget
    renamed: ClassVar = {"retry_seconds": "retry_delays_ms", "log_retention_seconds": "log_ms"}

    queue: str | None = None
    stream: str | None = None
    topic: Annotated[
        str | None,
        Field(
            description="Another topic, whose routes match the message again. A message passes at most 8 topics; a route that "
            "leads back to its topic is refused with `route_cycle`."
        ),
    ] = None
    url: Annotated[
        str | None,
        Field(
            description="An https URL that messages are posted to, signed, as by a webhook. They wait in a queue of the route's own; "
            "the queue and the webhook are named `route:<topic>.<route>`, or `route:<topic>:<route>` if the topic's name has a dot.",
            examples=["https://shop.example/hooks"],
        ),
    ] = None
    ordered: Annotated[
        bool | None,
        _url_field(
            "Post the messages of one key one after another, in order: each when the one before was delivered or dead-lettered. "
            "Messages need a key. Immutable; null: false."
        ),
    ] = None
    spread: Annotated[
        list[SpreadMemberConfig] | None,
        Field(
            description=f"{limits.SPREAD_MEMBERS_MIN} to {limits.SPREAD_MEMBERS_MAX} queues, streams or topics, of which each message "
            "goes to one, by consistent hashing: a new member takes messages from the others alone, and those of a removed one "
            "go to all others.",
            examples=[[{"queue": "worker-1", "weight": 2}, {"queue": "worker-2"}]],
            exclude_if=_is_none,
        ),
    ] = None
    by: Annotated[
        SpreadBy | None,
        Field(
            strict=False,
            description="Of a spread. `key`: copies with one key, as `key` makes it, go to one member. `subject`: messages of one subject "
            "do. `random`: by the place of the message in the topic, as one without a key or subject. null: `key`.",
            exclude_if=_is_none,
        ),
    ] = None
    headers: Annotated[
        dict[str, str] | None,
        _url_field(
            f"Headers sent with each delivery. Values are stored encrypted and shown as `{HIDDEN_VALUE}`, which keeps a value if it "
            "is sent; if omitted, all headers are unchanged."
        ),
    ] = None
    credentials: Annotated[
        CredentialsConfig | None,
        _url_field("OAuth client with whose access tokens messages are posted."),
    ] = None
    timeout_seconds: Annotated[
        Seconds | None,
        _url_field(
            f"Timeout for the complete response, 0.1 to 120 seconds; null: {_TIMEOUT_SECONDS:g}."
        ),
    ] = None
    rate: Annotated[float | None, _url_field("Maximum deliveries per second; null: no limit.")] = (
        None
    )
    in_flight_max: Annotated[
        int | None,
        _url_field(
            f"Maximum number of concurrent deliveries; null: {limits.WEBHOOK_IN_FLIGHT_DEFAULT}."
        ),
    ] = None
    retry_seconds: Annotated[
        list[Seconds] | None,
        _url_field(
            "Delays after the first failed attempt, the second, and so on, each ±10 %, after which a message is dead-lettered in the route's queue; null: nine delays, of three days together."
        ),
    ] = None
    disable_after_seconds: Annotated[
        Seconds | None,
        _url_field(
            f"Period of consecutive failures after which the webhook is disabled; null: {_DISABLE_AFTER_SECONDS:g}."
        ),
    ] = None
    log_retention_seconds: Annotated[
        Seconds | None,
        _url_field(
            f"Time that the log keeps a delivery after its last attempt; null: {_LOG_RETENTION_SECONDS:g}."
        ),
    ] = None

    @classmethod
    def from_domain(cls, value: RouteTarget, **others: Any) -> Self:
        if value.url is None:
            return cls.mapped(value, headers=None, **dict.fromkeys(_DEFAULTS), **others)
        headers = {name: text or HIDDEN_VALUE for name, text in value.headers or ()}
        return cls.mapped(value, headers=headers, **others)

    def to_domain(self) -> RouteTarget:
        defaults = {name: _DEFAULTS[name] for name in _DEFAULTS if getattr(self, name) is None}
        if self.spread is not None and self.by is None:
            defaults["by"] = SpreadBy.KEY
        return domain_value(
            RouteTarget, self.model_copy(update=defaults), headers=self._header_values()
        )

    def _header_values(self) -> tuple[tuple[str, str], ...] | None:
        if self.headers is None:
            return None
        headers = sorted(self.headers.items())
        return tuple((name, "" if text == HIDDEN_VALUE else text) for name, text in headers)

    def comparable(self) -> Self:
        """Return the target without secret values, and with all weights, as the engine returns it."""
        changes = dict(hidden_values(self.headers, self.credentials))
        if self.spread:
            changes["spread"] = [
                member.model_copy(update={"weight": member.weight}) for member in self.spread
            ]
        return self.model_copy(update=changes)


_DEFAULTS: dict[str, Any] = {
    "ordered": False,
    "timeout_seconds": _TIMEOUT_SECONDS,
    "in_flight_max": limits.WEBHOOK_IN_FLIGHT_DEFAULT,
    "retry_seconds": [in_seconds(delay) for delay in limits.WEBHOOK_RETRY_DELAYS_MS],
    "disable_after_seconds": _DISABLE_AFTER_SECONDS,
    "log_retention_seconds": _LOG_RETENTION_SECONDS,
}
"""Settings of a URL that leaves them out."""


class RouteTargetOut(RouteTargetConfig):
    """Target of a route. Another target has none of the fields of a URL."""


Template = Annotated[
    str, Field(description="Text in which `<name>` stands for the text of what it names.")
]


class HeaderTransformConfig(MappedConfig):
    """Headers to remove, and then headers to set."""

    domain = HeaderTransform
    renamed: ClassVar = {"set": "templates"}

    set: dict[str, Template] = {}
    remove: list[str] = []


class TransformConfig(MappedConfig):
    """Another body, headers or subject for a route's copies."""

    domain = Transform

    select: Annotated[
        str | None,
        Field(
            description="JSON Pointer to the part of the body that copies have.",
            examples=["/order"],
        ),
    ] = None
    paths: Annotated[
        dict[str, str],
        Field(
            description=f"Names of values of the message, each with a JSON Pointer such as `/body/order/id`, `/headers/tenant`, "
            f"`/subject` or `/key`; at most {limits.TRANSFORM_PATHS_MAX}. Always there: `<message>`, the body; `<subject>`, `<key>`, "
            "`<id>`, `<published_at>`, `<topic>`, `<route>`.",
            examples=[{"order": "/body/order/id"}],
        ),
    ] = {}
    template: Annotated[
        Any,
        Field(
            description="The new body: a JSON value or a text. `<name>` is the value itself where it is a whole string of a JSON "
            "value, and else its text; `\\\\<` is the character. null: the body as it is.",
            examples=[{"order": "<order>", "at": "<published_at>"}],
        ),
    ] = None
    headers: HeaderTransformConfig = HeaderTransformConfig()
    subject: Template | None = None
    strict: Annotated[
        bool,
        Field(
            description="Do not deliver a message without a value that a path names. Otherwise it is null in JSON and empty in text."
        ),
    ] = False

    @classmethod
    def from_domain(cls, value: Transform, **others: Any) -> Self:
        return cls.mapped(value, template=value.template, **others)

    def to_domain(self) -> Transform:
        return domain_value(Transform, self, template=self.template)


CopyKeyField = Annotated[
    Any,
    Field(
        description="Key of the copies, which is the message group in a FIFO queue: `key`, `subject`, a JSON Pointer such as "
        '`/body/customer`, or `{"constant": "x"}`. null: the key of the message.',
        examples=["/body/customer"],
    ),
]
