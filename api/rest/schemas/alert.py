"""Schemas of muted alerts."""

from typing import Annotated

from pydantic import Field

from api.rest.field_map import Mapped
from api.rest.schema_base import Config, ListPage, Seconds, Time
from storage.domain.alerts.kinds import AlertKind


class MuteConfig(Config):
    """Duration of a mute."""

    duration_seconds: Annotated[
        Seconds, Field(description="60 to 2592000 (30 days); the mute ends by itself.")
    ]


class MuteOut(Mapped):
    """A muted alert: the dashboard lists it separately, until a time."""

    renamed = {"name": "object"}

    kind: AlertKind
    name: Annotated[str, Field(description="Name of the object that the alert is about.")]
    muted_by: Annotated[str, Field(description="Name of the principal that muted it.")]
    muted_at: Time
    until: Annotated[Time, Field(description="End of the mute.")]


class MutePage(ListPage[MuteOut]):
    """Mutes by kind and name."""
