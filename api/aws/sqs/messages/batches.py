"""Common parts of batch calls: faults of the whole call, and a result for each entry."""

import re
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from api.aws.protocol.errors import AwsError
from api.aws.sqs.errors import (
    BATCH_ENTRY_IDS_NOT_DISTINCT,
    EMPTY_BATCH_REQUEST,
    INVALID_BATCH_ENTRY_ID,
    TOO_MANY_ENTRIES,
    missing,
    refuse,
)
from api.aws.sqs.shapes import BatchResultEntry, BatchResultErrorEntry

ENTRIES_MAX = 10

_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")


class BatchEntry(Protocol):
    """An entry of a batch request."""

    id: str | None


E = TypeVar("E", bound=BatchEntry)


def named_entries(entries: Sequence[E] | None, kind: str) -> list[tuple[str, E]]:
    """Return the entries with their ids. Raises AwsError for faults of the whole call.

    `kind` is the Query protocol's name of an entry.
    """
    if not entries:
        refuse(EMPTY_BATCH_REQUEST, f"There should be at least one {kind} in the request.")
    if len(entries) > ENTRIES_MAX:
        refuse(
            TOO_MANY_ENTRIES,
            f"Maximum number of entries per request are {ENTRIES_MAX}. "
            f"You have sent {len(entries)}.",
        )
    named = [(_id_of(entry, kind, number), entry) for number, entry in enumerate(entries, 1)]
    seen: set[str] = set()
    for name, _ in named:
        if name in seen:
            refuse(BATCH_ENTRY_IDS_NOT_DISTINCT, f"Id {name} repeated.")
        seen.add(name)
    return named


def _id_of(entry: BatchEntry, kind: str, number: int) -> str:
    if entry.id is None:
        raise missing(f"{kind}.{number}.Id")
    if not _ID.fullmatch(entry.id):
        refuse(
            INVALID_BATCH_ENTRY_ID,
            "A batch entry id can only contain alphanumeric characters, hyphens and underscores. "
            "It can be at most 80 letters long.",
        )
    return entry.id


def failed(name: str, error: AwsError) -> BatchResultErrorEntry:
    """Return the result of an entry that was refused, in an otherwise successful response."""
    return BatchResultErrorEntry(name, error.fault.sender, error.fault.code, error.message)


def results_of(
    refusals: Mapping[str, AwsError | None],
) -> tuple[list[BatchResultEntry], list[BatchResultErrorEntry]]:
    """Return the results of entries by id: those that succeeded, and those that were refused."""
    successful = [BatchResultEntry(name) for name, error in refusals.items() if error is None]
    refused = [failed(name, error) for name, error in refusals.items() if error is not None]
    return successful, refused
