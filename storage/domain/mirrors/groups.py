"""Mirrored group: a consumer group of the origin, and its copy here.

    created ── first translated ──▶ followed ── every few seconds: moved forward
                                        │
                                        └── members, or commits, of its own ──▶ in_use    never moved again

A group of that name that the mirror did not create is `foreign`, and left alone.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec


class MirroredGroupState(StrEnum):
    """Relation of a group here to that of the origin."""

    CREATED = "created"
    """Created, without offsets: that of the origin has none, or they were not translated yet."""

    FOLLOWED = "followed"
    """Committed offsets are those of the origin, translated."""

    IN_USE = "in_use"
    """Used here, by members or commits, and so not moved."""

    FOREIGN = "foreign"
    """Made by others before, and left alone."""


class MirroredGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A group of the origin, which reads a mirrored stream, and how far its copy is.

    `origin_created_at`: when it was created at the origin; another one of its name is another group. `group_id`: the copy that
    the mirror created; None before. `positions`: the offsets that it was last moved to, by shard; None if it never was. `noted_at_ms`:
    when the mirror found it.
    """

    group_name: str
    stream: str
    origin_created_at: str
    noted_at_ms: int
    state: MirroredGroupState = MirroredGroupState.CREATED
    group_id: str | None = None
    positions: Mapping[str, int] | None = None
    moved_at_ms: int | None = None
    failure: str = ""
