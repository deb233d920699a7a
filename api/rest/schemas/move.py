"""Move schemas."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, Field

from api.rest.field_map import Mapped
from api.rest.schema_base import Config, Time
from storage.domain import limits
from storage.domain.queues.moves import Move, MoveState


class MoveConfig(Config):
    """Target of the ready messages: `destination`, or the source queue of each message."""

    destination: str | None = None
    per_second: Annotated[
        int | None, Field(ge=1, le=limits.MOVE_RATE_MAX, description="null: unlimited.")
    ] = None


class MoveChange(Config):
    """Cancellation of a running move. Messages already moved stay where they are."""

    state: Annotated[MoveState, Field(strict=False)]


class MoveOut(Mapped):
    """A move and its progress."""

    renamed = {"id": "move_id"}

    id: str
    source: str
    destination: str | None
    per_second: int | None
    state: MoveState
    moved: int
    to_move: Annotated[int, Field(description="Number of messages at the start of the move.")]
    redrive: Annotated[
        bool, Field(description="Whether the move redrives the queue's own dead letters.")
    ]
    failure: Annotated[
        str,
        Field(
            description="`queue_not_found`, `queue_read_only` for a destination that is a mirror's, or "
            "`message_source_unknown` for a message that was sent to the dead-letter queue itself; empty unless the move failed."
        ),
    ]
    started_at: Time

    @classmethod
    def from_domain(cls, value: Move, **others: Any) -> Self:
        return super().from_domain(
            value,
            per_second=value.per_second or None,
            redrive=value.which_dead is not None,
            **others,
        )


class MoveList(BaseModel):
    """The moves from a queue, newest first."""

    items: list[MoveOut]
