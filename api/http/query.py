"""Query strings, decoded to structs; the filter of records in one."""

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Annotated, Any
from urllib.parse import parse_qsl

import msgspec
from msgspec import Meta, inspect

from api.http.validation_errors import from_msgspec, unknown_field
from storage.domain import limits
from storage.domain.errors import FieldFault, MatchInvalid, ValidationFailed
from storage.domain.filters.matches import parse_matches
from storage.domain.streams.record_filter import Filter

KeyTerm = Annotated[str, Meta(max_length=limits.KEY_CHARACTERS_MAX)]
HeaderTerm = Annotated[str, Meta(pattern=r"^[^:]+:")]
BodyTerm = Annotated[str, Meta(pattern=r"^(/|=|$)", max_length=4_096)]

BODY_TERM = (
    "whose JSON body has this value at a JSON Pointer, as `/customer/id=7`, or any value, as `/customer/id`; "
    "can be repeated. A value that is valid JSON is compared as JSON, any other as text."
)
"""Description of the parameter `body` of a filter, after the things that it selects."""


def read_query(query_string: bytes, kind: type[msgspec.Struct] | None) -> Any:
    """Decode the query to a struct of `kind`.

    Raises ValidationFailed for unknown, repeated or wrong parameters.
    """
    if not query_string:
        return kind and kind()
    try:
        pairs = parse_qsl(
            query_string.decode("latin-1"),
            keep_blank_values=True,
            errors="replace",
            max_num_fields=limits.QUERY_PARAMETERS_MAX,
        )
    except ValueError:
        detail = f"A query can have at most {limits.QUERY_PARAMETERS_MAX} parameters."
        raise ValidationFailed(detail) from None
    if kind is None:
        refuse_parameters([name for name, _ in pairs], ())
        return None
    parameters: dict[str, Any] = dict(pairs)
    if repeatable := _repeatable(kind):
        for name in repeatable & parameters.keys():
            parameters[name] = [value for key, value in pairs if key == name]
        pairs = [pair for pair in pairs if pair[0] not in repeatable]
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValidationFailed("A query parameter is duplicated.")
    try:
        return msgspec.convert(parameters, kind, strict=False)
    except msgspec.ValidationError as error:
        raise from_msgspec(error, kind) from None


def refuse_parameters(names: Iterable[str], allowed: Collection[str]) -> None:
    """Raise ValidationFailed for names that are not parameters of the operation."""
    faults = [unknown_field(name, allowed) for name in names if name not in allowed]
    if faults:
        raise ValidationFailed("; ".join(fault.detail for fault in faults[:3]), *faults)


@lru_cache(maxsize=256)
def _repeatable(kind: type[msgspec.Struct]) -> frozenset[str]:
    """Return the parameters that may be repeated: their fields are tuples."""
    struct_type = inspect.type_info(kind)
    assert isinstance(struct_type, inspect.StructType)
    return frozenset(field.encode_name for field in struct_type.fields if _is_tuple(field.type))


def _is_tuple(kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.Metadata):
        kind = kind.type
    return isinstance(kind, inspect.VarTupleType)


MATCH = "A match, or a list of matches of which any selects a record, as a route of a topic has it."
"""Description of the member `match` of a filter."""


class RecordTerms(msgspec.Struct, forbid_unknown_fields=True):
    """Filter of records: those that match every parameter that is given."""

    key: Annotated[
        tuple[KeyTerm, ...],
        Meta(description="Only records with one of these keys; can be repeated."),
    ] = ()
    header: Annotated[
        tuple[HeaderTerm, ...],
        Meta(description="Only records with this header, as `name:value`; can be repeated."),
    ] = ()
    body: Annotated[tuple[BodyTerm, ...], Meta(description=f"Only records {BODY_TERM}")] = ()
    subject: Annotated[
        tuple[str, ...],
        Meta(
            description="Only records whose subject matches one of these patterns, as `order.*` or `order.#`; "
            "can be repeated."
        ),
    ] = ()
    match: Annotated[
        str,
        Meta(
            description="Only records that a match takes: an object or a list, in JSON, as a route of a topic has it."
        ),
    ] = ""

    def record_filter(self) -> Filter:
        """Return the filter. Raises ValidationFailed, MatchInvalid."""
        match = _match_of(self.subject, self.match)
        return Filter.of_terms(self.key, self.header, self.body, match)


def _match_of(subjects: Sequence[str], text: str) -> Any:
    """Return a match whose subjects may be given beside it; UNSET without either."""
    match = _decoded(text) if text else msgspec.UNSET
    if not subjects:
        return match
    parse_matches({"subject": list(subjects)}, "")
    if not match:
        return {"subject": list(subjects)}
    parse_matches(match, "/match")
    matches = match if isinstance(match, list) else [match]
    if any(one.get("subject") is not None for one in matches):
        detail = "The match has subjects of its own; add the patterns to these"
        raise MatchInvalid(None, FieldFault("/subject", detail, "conflict"))
    return [one | {"subject": list(subjects)} for one in matches]


def _decoded(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        raise MatchInvalid(None, FieldFault("/match", "The match must be JSON")) from None
