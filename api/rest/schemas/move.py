"""Moves on the wire."""

from typing import Annotated, Self

from pydantic import BaseModel, Field

from api.native.fields import rfc3339
from api.rest.schema_base import Config, Time
from storage.domain import limits
from storage.domain.queues.moves import Move, MoveState


class MoveConfig(Config):
    """Where ready messages go: to `destination`, or each back to the queue that it died in."""

    destination: str | None = None
    per_second: Annotated[
        int | None, Field(ge=1, le=limits.MOVE_RATE_MAX, description="null: as fast as it goes.")
    ] = None


class MoveChange(Config):
    """What to do with a running move: stop it. What has moved stays where it is."""

    state: Annotated[MoveState, Field(strict=False)]


class MoveOut(BaseModel):
    """A move, and how far it is."""

    id: str
    source: str
    destination: str | None
    per_second: int | None
    state: MoveState
    moved: int
    to_move: Annotated[int, Field(description="How many there were when it began.")]
    redrive: Annotated[
        bool, Field(description="Whether it makes the queue's own dead letters ready again.")
    ]
    failure: Annotated[str, Field(description="Why it failed; empty unless it did.")]
    started_at: Time

    @classmethod
    def from_domain(cls, move: Move) -> Self:
        return cls(
            id=move.move_id,
            source=move.source.name,
            destination=None if move.destination is None else move.destination.name,
            per_second=move.per_second or None,
            state=move.state,
            moved=move.moved,
            to_move=move.to_move,
            redrive=move.which_dead is not None,
            failure=move.failure,
            started_at=rfc3339(move.started_at_ms),
        )


class MoveList(BaseModel):
    """The moves from a queue, the newest first."""

    items: list[MoveOut]
