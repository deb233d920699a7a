"""Audit log schemas."""

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, Field

from api.native.former_names import former_field, former_name
from api.rest.schema_base import Time
from storage.domain.access.audit import ApiProtocol, AuditRecord


class AuditOrder(StrEnum):
    """Sort order of audit entries."""

    NEWEST = "newest"
    OLDEST = "oldest"


class AuditEntry(BaseModel):
    """One administrative call, or a failed authentication."""

    seq: Annotated[int, Field(description="Sequence number of the entry; the log has no gaps.")]
    called_at: Time
    namespace: str
    principal: Annotated[str, Field(description="Name of the principal.")]
    credential: Annotated[str, Field(description="Id of the caller's credential.")]
    authenticated: Annotated[str, Field(description="Authentication method of the caller.")]
    address: Annotated[str, Field(description="Remote address of the caller's connection.")]
    protocol: Annotated[
        ApiProtocol | None,
        Field(
            description="Protocol of the call. Entries of versions that did not record it "
            "under this name have only `door`."
        ),
    ] = None
    door: Annotated[ApiProtocol, former_field("protocol")]
    operation: str
    action: Annotated[str, Field(description="Permission that the operation requires.")]
    resource: Annotated[str, Field(description="Resource, as in `/v1/…`.")]
    request_id: str
    outcome: Annotated[
        str,
        Field(
            description="`done`, `refused:<code>`, `failed:<code>`, or `unknown` if the "
            "process ended before it recorded the outcome."
        ),
    ]
    before: Annotated[
        dict[str, Any] | None,
        Field(
            description="Fields of the definition that the call changed, with their "
            "previous values."
        ),
    ]
    after: Annotated[
        dict[str, Any] | None,
        Field(
            description="The same fields with their new values; otherwise a summary of "
            "the response."
        ),
    ]
    prev_hash: Annotated[str, Field(description="Hash of the previous entry.")]
    hash: Annotated[
        str,
        Field(
            description="SHA-256 of this entry without its hash, as JSON with sorted keys and no spaces."
        ),
    ]

    @classmethod
    def from_domain(cls, entry: AuditRecord) -> Self:
        return cls(**entry.fields())


class AuditPage(BaseModel):
    """A page of audit entries.

    `complete`: no entry in the range of the page is left out, so that each entry follows the one before it.
    """

    items: list[AuditEntry]
    next_cursor: str | None
    complete: bool
    whole: ClassVar[Any] = former_name("complete", bool)
