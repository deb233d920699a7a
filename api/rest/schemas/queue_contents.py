"""Queue content schemas: message changes, dead letters, parked groups, consumers, history."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

import msgspec
from msgspec import UNSET
from pydantic import BaseModel, Field, model_validator

from api.native.fields import body_from_json
from api.native.former_names import former_name
from api.rest.field_map import Mapped
from api.rest.schema_base import Config, ListPage, Seconds, Time
from storage.domain import limits
from storage.domain.queues.consumer import (
    ConsumerActivity,
    ConsumerList,
    ConsumerProtocol,
    QueueConsumer,
)
from storage.domain.queues.history import MessageEventType, MessageHistory


class Redriven(BaseModel):
    """Number of redriven dead letters."""

    redriven: int


class MessageChange(Config):
    """Changes to a message.

    The body (`body`, text or JSON, or `body_base64`) can change while the message is waiting, parked or dead-lettered. The
    due time and the priority can change while it is waiting in a standard queue.
    """

    body: Any = None
    body_base64: str | None = None

    delay_seconds: Annotated[
        Seconds | None,
        Field(description="Delay from now until the message is due; 0: immediately."),
    ] = None
    priority: Annotated[int | None, Field(ge=0, le=limits.PRIORITY_MAX)] = None

    def new_body(self) -> tuple[bytes, str] | None:
        """Return the new body and content type, or None if unchanged. Raises ValidationFailed."""
        has_body = "body" in self.model_fields_set
        if not has_body and self.body_base64 is None:
            return None
        said = msgspec.Raw(msgspec.json.encode(self.body)) if has_body else UNSET
        encoded = UNSET if self.body_base64 is None else self.body_base64
        return body_from_json(said, encoded, "body")


class RedriveConfig(Config):
    """Dead letters to redrive: those that match all given conditions; default: all of them."""

    reason: str = ""
    group: str = ""
    messages: Annotated[
        list[str] | None,
        Field(
            min_length=1,
            max_length=limits.BATCH_MESSAGES_MAX,
            description="Message ids or offsets. Default: all messages.",
        ),
    ] = None
    messages_max: Annotated[
        int | None, Field(ge=1, description="Cannot be combined with `per_second`.")
    ] = None
    per_second: Annotated[
        int | None,
        Field(
            ge=1,
            le=limits.MOVE_RATE_MAX,
            description="Messages per second; runs in the background as a move that can "
            "be cancelled.",
        ),
    ] = None

    @model_validator(mode="after")
    def _is_one_or_the_other(self) -> Self:
        if self.per_second is not None and self.messages_max is not None:
            raise ValueError("Specify only one of per_second and messages_max")
        return self


class DeathReasonOut(Mapped):
    """Dead letters with the same reason."""

    reason: str
    count: int
    first_died_at: Time
    last_died_at: Time


class DeathReasons(BaseModel):
    """Dead letters of a queue by reason, most frequent first."""

    items: list[DeathReasonOut]


class ParkedGroupOut(Mapped):
    """A group whose messages are not delivered until it is resumed."""

    group: str
    state: Literal["parked"] = "parked"
    parked_at: Time
    reason: str
    poison_offset: Annotated[
        int | None,
        Field(description="Offset of the failing message; null if the group was paused manually."),
    ]
    messages: Annotated[int, Field(description="Number of waiting messages.")]
    first_offset: Annotated[int | None, Field(description="The first of the waiting messages.")]


class ParkedGroups(ListPage[ParkedGroupOut]):
    """Groups by name. `next_cursor` is null on the last page."""


class PauseConfig(Config):
    """Reason for pausing a group."""

    reason: Annotated[str, Field(max_length=limits.REASON_CHARACTERS_MAX)] = "paused"


class Resumed(BaseModel):
    """Number of messages that were parked."""

    resumed: int


class ConsumerIdentity(Mapped):
    """A principal that receives from one address with one client."""

    id: Annotated[str, Field(description="Digest of the fields that identify the consumer.")]
    principal: Annotated[
        str, Field(description="Name of its principal; for a webhook, the name of the webhook.")
    ]
    protocol: ConsumerProtocol
    address: Annotated[
        str, Field(description="Address of its connection: behind a proxy, the proxy's.")
    ]
    client: Annotated[str, Field(description="Client program: the start of its `User-Agent`.")]


class QueueConsumerOut(ConsumerIdentity):
    """A consumer of a queue.

    Rates are means over the last five minutes, or since its first receive.
    """

    receives_per_second: float
    messages_per_second: float
    last_received_at: Annotated[Time, Field(description="Last receive, also of an empty one.")]
    waiting: Annotated[int, Field(description="Receives that wait for a message.")]
    in_flight: Annotated[int, Field(description="Messages received and not yet settled.")]


class QueueConsumerList(BaseModel):
    """The consumers of a queue, most messages first."""

    items: list[QueueConsumerOut]
    in_flight_is_estimate: Annotated[
        bool,
        Field(
            description="More than 5,000 messages are in flight: `in_flight` is extrapolated from those."
        ),
    ]

    @classmethod
    def from_domain(cls, consumers: ConsumerList) -> "QueueConsumerList":
        """Return the list on the wire."""
        items = [_consumer_out(activity) for activity in consumers.consumers]
        return cls(items=items, in_flight_is_estimate=consumers.is_estimate)


def _consumer_out(activity: ConsumerActivity) -> QueueConsumerOut:
    return QueueConsumerOut.mapped(
        activity,
        activity.consumer,
        receives_per_second=round(activity.receives_per_second, 3),
        messages_per_second=round(activity.messages_per_second, 3),
    )


class MessageEventOut(Mapped):
    """One state change of a message."""

    type: MessageEventType
    what: ClassVar[Any] = former_name("type", MessageEventType)
    at: Time
    until: Annotated[
        Time | None,
        Field(description="End of the delay or of the delivery that the event started."),
    ]
    number: Annotated[
        int | None,
        Field(
            description="For a delivery, its number. For a failure or an expired lease, the count."
        ),
    ]
    reason: str
    details: Annotated[
        str, Field(description="Beginning of the details of a nack or reject: 1 KiB at most.")
    ]


class MessageAttemptOut(Mapped):
    """One delivery of a message, and how it ended."""

    number: int
    received_at: Time
    ended_at: Annotated[Time | None, Field(description="Null while the message is in flight.")]
    outcome: Annotated[
        str,
        Field(
            description="The event that ended it, such as `acknowledged`, `nacked` or `lease_ended`; or `in_flight`."
        ),
    ]
    consumer: Annotated[
        ConsumerIdentity | None,
        Field(description="Null if unknown, or if it has not received for a day."),
    ]
    reason: str
    details: str


class MessageHistoryOut(BaseModel):
    """History of a message, oldest event first."""

    id: Annotated[str, Field(description="As requested.")]
    offset: int
    state: Annotated[
        str,
        Field(
            description="State after the last change: ready, delayed, in_flight, "
            "dead_lettered, moving or gone; empty if unknown."
        ),
    ]
    truncated: Annotated[
        bool,
        Field(
            description="Earlier events are missing because they expired or the history"
            " was disabled."
        ),
    ]
    attempts: Annotated[
        list[MessageAttemptOut], Field(description="Deliveries among these events, oldest first.")
    ]
    events: list[MessageEventOut]

    @classmethod
    def from_domain(
        cls, word: str, history: MessageHistory, consumers: Mapping[bytes, QueueConsumer]
    ) -> Self:
        return cls(
            id=word,
            offset=history.offset,
            state=history.state,
            truncated=history.truncated,
            attempts=[
                MessageAttemptOut.from_domain(
                    attempt, consumer=_identity(consumers.get(attempt.consumer_key))
                )
                for attempt in history.attempts
            ],
            events=[MessageEventOut.from_domain(event) for event in history.events],
        )


def _identity(consumer: QueueConsumer | None) -> ConsumerIdentity | None:
    return None if consumer is None else ConsumerIdentity.from_domain(consumer)


FenceToken = Annotated[str, Field(max_length=limits.FENCE_CHARACTERS_MAX)]


class QueueFenceConfig(Config):
    """The fencing token of a queue; empty for none.

    `expected`: apply only if this is the current token.
    """

    token: FenceToken
    expected: FenceToken | None = None


class QueueFenceOut(BaseModel):
    """The fencing state of a queue."""

    fenced: bool
