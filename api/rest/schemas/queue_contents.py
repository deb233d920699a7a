"""What queues hold, on the wire: changes of messages, dead letters, parked groups."""

from typing import Annotated, Any, Literal, Self

import msgspec
from msgspec import UNSET
from pydantic import BaseModel, Field, model_validator

from api.native.fields import body_from_json, rfc3339
from api.rest.schema_base import Config, Seconds, Time
from storage.domain import limits
from storage.domain.queues.history import MessageEvent, MessageHistory, What
from storage.domain.queues.message import DeathReason
from storage.domain.queues.policies import ParkedGroup


class Redriven(BaseModel):
    """How many dead letters are ready again."""

    redriven: int


class MessageChange(Config):
    """What to change of a message.

    Its body, while it waits, is parked or dead: `body` (text, or JSON) or `body_base64`. Of a message that waits in a
    standard queue also when it is due, and its priority.
    """

    body: Any = None
    body_base64: str | None = None

    delay_seconds: Annotated[
        Seconds | None, Field(description="When it is due, counted from now; 0: at once.")
    ] = None
    priority: Annotated[int | None, Field(ge=0, le=limits.PRIORITY_MAX)] = None

    def new_body(self) -> tuple[bytes, str] | None:
        """The new body and its content type, None when it stays. Raises ValidationFailed."""
        has_body = "body" in self.model_fields_set
        if not has_body and self.body_base64 is None:
            return None
        said = msgspec.Raw(msgspec.json.encode(self.body)) if has_body else UNSET
        encoded = UNSET if self.body_base64 is None else self.body_base64
        return body_from_json(said, encoded, "body")


class RedriveConfig(Config):
    """Which dead letters: those that meet everything that is said; without a word all of them."""

    reason: str = ""
    group: str = ""
    messages: Annotated[
        list[str],
        Field(max_length=limits.BATCH_MESSAGES_MAX, description="Ids or offsets."),
    ] = []
    messages_max: Annotated[
        int | None, Field(ge=1, description="Not together with `per_second`.")
    ] = None
    per_second: Annotated[
        int | None,
        Field(
            ge=1,
            le=limits.MOVE_RATE_MAX,
            description="So many a second, in the background, as a move that can be cancelled.",
        ),
    ] = None

    @model_validator(mode="after")
    def _is_one_or_the_other(self) -> Self:
        if self.per_second is not None and self.messages_max is not None:
            raise ValueError("per_second and messages_max exclude each other")
        return self


class DeathReasonOut(BaseModel):
    """Dead letters that have the same reason."""

    reason: str
    count: int
    first_died_at: Time
    last_died_at: Time

    @classmethod
    def from_domain(cls, found: DeathReason) -> Self:
        return cls(
            reason=found.reason,
            count=found.count,
            first_died_at=rfc3339(found.first_died_at_ms),
            last_died_at=rfc3339(found.last_died_at_ms),
        )


class DeathReasons(BaseModel):
    """A queue's dead letters by reason, the most frequent first."""

    items: list[DeathReasonOut]


class ParkedGroupOut(BaseModel):
    """A group of which nothing is delivered until it is resumed."""

    group: str
    state: Literal["parked"] = "parked"
    parked_at: Time
    reason: str
    poison_offset: Annotated[
        int | None, Field(description="The message to blame; null when it was parked by hand.")
    ]
    messages: Annotated[int, Field(description="How many wait.")]
    first_offset: Annotated[int | None, Field(description="The first of them.")]

    @classmethod
    def from_domain(cls, found: ParkedGroup) -> Self:
        return cls(
            group=found.group,
            parked_at=rfc3339(found.parked_at_ms),
            reason=found.reason,
            poison_offset=found.poison_offset,
            messages=found.messages,
            first_offset=found.first_offset,
        )


class ParkedGroups(BaseModel):
    """Groups by name. `next_cursor` is null on the last page."""

    items: list[ParkedGroupOut]
    next_cursor: str | None


class PauseConfig(Config):
    """Why a group is paused."""

    reason: Annotated[str, Field(max_length=limits.REASON_CHARACTERS_MAX)] = "paused"


class Resumed(BaseModel):
    """How many messages were parked."""

    resumed: int


class MessageEventOut(BaseModel):
    """One change of a message's state."""

    what: What
    at: Time
    until: Annotated[
        Time | None, Field(description="When the delay or the delivery ends that it began.")
    ]
    number: Annotated[
        int | None,
        Field(
            description="Of a delivery: which one. Of a failure, or a lease that ended: how many."
        ),
    ]
    reason: str

    @classmethod
    def from_domain(cls, event: MessageEvent) -> Self:
        return cls(
            what=event.what,
            at=rfc3339(event.at_ms),
            until=None if event.until_ms is None else rfc3339(event.until_ms),
            number=event.number,
            reason=event.reason,
        )


class MessageHistoryOut(BaseModel):
    """What has happened to a message, oldest first."""

    id: Annotated[str, Field(description="As it was asked for.")]
    offset: int
    state: Annotated[
        str,
        Field(
            description="Where its last change left it: ready, delayed, in_flight, dead_lettered, moving or gone; empty "
            "where none is known."
        ),
    ]
    truncated: Annotated[
        bool,
        Field(description="Its beginning is not there: it is too old, or the history was off."),
    ]
    events: list[MessageEventOut]

    @classmethod
    def from_domain(cls, word: str, found: MessageHistory) -> Self:
        return cls(
            id=word,
            offset=found.offset,
            state=found.state,
            truncated=found.truncated,
            events=[MessageEventOut.from_domain(event) for event in found.events],
        )
