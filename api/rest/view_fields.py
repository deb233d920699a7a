"""Fields that the relations and the rows of views and of queries share."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from pydantic import BaseModel, Field

from api.native.fields import rfc3339
from api.rest.field_map import Mapped
from api.rest.schema_base import Time
from storage.domain.errors import ValidationFailed
from storage.domain.views.progress import RevisionReport, ViewProgress
from storage.domain.views.view import BadPolicy

R = TypeVar("R", bound=BaseModel)

_FIELDS = {"stream": None, "table": frozenset({"columns"}), "view": frozenset[str]()}
"""Kinds of relations, with the fields that each may have; None for all."""

DeclaredColumns = Annotated[
    str,
    Field(
        description="Columns of the records' JSON data, such as `page string, ms bigint`. Each record also has `key`, `value`, `data`, "
        "`headers`, `event_time`, `arrival_time`, `shard` and `offset`."
    ),
]
EventTimeColumn = Annotated[
    str,
    Field(
        description="Column with the event time, of type timestamp. Without one it is the producer's event time, or else the time of arrival."
    ),
]
OnBad = Annotated[
    BadPolicy,
    Field(
        strict=False,
        description="Records whose data is not JSON of the columns: `null` for the columns that cannot be read, or `skip` the record.",
    ),
]
Positions = Annotated[
    dict[str, int], Field(description="Next offset to read, by shard: the rows include all before.")
]
Joined = Annotated[
    dict[str, dict[str, int]],
    Field(
        description="Positions in the other stream of a join, by its name in the query; empty without a join."
    ),
]
Watermark = Annotated[
    Time | None,
    Field(
        description="Windows that end before are complete, except for late records. Null before the first record."
    ),
]


def relations_by_kind(relations: Mapping[str, R]) -> dict[str, dict[str, R]]:
    """Return the relations of a query by name, the streams, tables and views apart.

    Raises ValidationFailed.
    """
    kinds: dict[str, dict[str, R]] = {kind: {} for kind in _FIELDS}
    for name, relation in relations.items():
        kinds[_kind_of(name, relation)][name] = relation
    return kinds


def _kind_of(name: str, relation: BaseModel) -> str:
    pointer = f"/from/{name}"
    given = {field for field in relation.model_fields_set if getattr(relation, field) is not None}
    kinds = given & _FIELDS.keys()
    if len(kinds) != 1:
        detail = "Specify exactly one of `stream`, `table` and `view`"
        raise ValidationFailed.at(pointer, detail, "conflict")
    [kind] = kinds
    allowed = _FIELDS[kind]
    others = sorted(given - kinds - (allowed or set()))
    if allowed is not None and others:
        detail = f"A {kind} has no such field"
        raise ValidationFailed.at(f"{pointer}/{others[0]}", detail, "conflict")
    return kind


class ViewColumnOut(Mapped):
    """A column of the rows, and its type in Spark SQL."""

    name: str
    type: str


class RowDifferenceOut(BaseModel):
    """A row of a view and of another revision, such as a rebuild; null where there is none."""

    before: dict[str, Any] | None
    after: dict[str, Any] | None


def joined_out(progress: ViewProgress) -> dict[str, dict[str, int]]:
    """Return the positions in the other stream of a join on the wire."""
    return {name: shards_out(one.positions) for name, one in progress.joined.items()}


def shards_out(positions: Mapping[int, int]) -> dict[str, int]:
    """Return positions by shard, in the order of shards."""
    return {str(shard): offset for shard, offset in sorted(positions.items())}


def time_out(ms: int | None) -> str | None:
    """Return a time on the wire."""
    return None if ms is None else rfc3339(ms)


def differences_out(report: RevisionReport) -> list[RowDifferenceOut]:
    """Return the samples of a report on the wire."""
    return [
        RowDifferenceOut(before=row_out(one.before), after=row_out(one.after))
        for one in report.samples
    ]


def row_out(encoded: str | None) -> dict[str, Any] | None:
    """Return a row on the wire."""
    return None if encoded is None else msgspec.json.decode(encoded)
