"""The audit log on the wire."""

from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field

from api.rest.schema_base import Time
from storage.domain.access.audit import Door, Entry


class AuditOrder(StrEnum):
    """Which entries come first."""

    NEWEST = "newest"
    OLDEST = "oldest"


class AuditEntry(BaseModel):
    """One administrative call, or a caller whom nobody knew."""

    seq: Annotated[int, Field(description="Its number; there is none left out in the whole log.")]
    called_at: Time
    namespace: str
    principal: Annotated[str, Field(description="Who called.")]
    credential: Annotated[str, Field(description="The id of what the caller showed.")]
    authenticated: Annotated[str, Field(description="How the caller was known.")]
    address: Annotated[str, Field(description="The other end of the caller's connection.")]
    door: Door
    operation: str
    action: Annotated[str, Field(description="The right that it needs.")]
    resource: Annotated[str, Field(description="What it was about, as in `/v1/…`.")]
    request_id: str
    outcome: Annotated[
        str,
        Field(
            description="`done`, `refused:<code>`, `failed:<code>`, or `unknown` where nobody lived to tell."
        ),
    ]
    before: Annotated[
        dict[str, Any] | None,
        Field(description="What the call changed of a definition, as it was."),
    ]
    after: Annotated[
        dict[str, Any] | None,
        Field(description="The same, as it is now; else what else can be told of its answer."),
    ]
    prev_hash: Annotated[str, Field(description="The hash of the entry before.")]
    hash: Annotated[
        str,
        Field(
            description="SHA-256 of this entry without its hash, as JSON with sorted keys and no spaces."
        ),
    ]

    @classmethod
    def from_domain(cls, entry: Entry) -> Self:
        return cls(**entry.fields())


class AuditPage(BaseModel):
    """Some entries. `whole`: none is left out of what lies between them, so that each follows the one before."""

    items: list[AuditEntry]
    next_cursor: str | None
    whole: bool
