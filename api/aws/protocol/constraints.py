"""Constraints on input members, reported in AWS's format.

    1 validation error detected: Value '' at 'streamName' failed to satisfy constraint: Member must …

A shape declares them next to the type, as the service's model does; the decoder checks the types themselves.

    stream_name: Annotated[str | None, text(1, 128, "[a-z]+"), REQUIRED] = None
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from api.aws.protocol.errors import AwsError, AwsFault

ERRORS_MAX = 10  # in one error message
VALUE_CHARACTERS_MAX = 256  # of a value in an error message
_BOUNDS, _REQUIRED = "bounds", "required"
_ANCHORED = re.compile(r"\^\((.*)\)\$")

REQUIRED = msgspec.Meta(extra={_REQUIRED: True})
"""The member is required."""


class ValueBounds(NamedTuple):
    """Bounds of a number or length, a pattern of the whole text, and the values allowed."""

    least: int | None = None
    most: int | None = None
    pattern: str | None = None
    choices: tuple[str, ...] = ()

    def faults(self, value: Any) -> Iterator[str]:
        """Yield the constraints that the value does not satisfy."""
        if self.choices and value not in self.choices:
            yield f"Member must satisfy enum value set: [{', '.join(self.choices)}]"
        number = value if isinstance(value, int) else len(value)
        noun = "value" if isinstance(value, int) else "length"
        too_much = self.most is not None and number > self.most
        if self.pattern is not None and not too_much and not _matches(self.pattern, value):
            yield self._pattern_sentence()
        if too_much:
            yield f"Member must have {noun} less than or equal to {self.most}"
        if self.least is not None and number < self.least:
            yield f"Member must have {noun} greater than or equal to {self.least}"

    def sentence(self) -> str:
        """Return all constraints, in the form reported for the items of a collection."""
        constraints = []
        if self.most is not None:
            constraints.append(f"Member must have length less than or equal to {self.most}")
        if self.least is not None:
            constraints.append(f"Member must have length greater than or equal to {self.least}")
        if self.pattern is not None:
            constraints.append(self._pattern_sentence())
        if self.choices:
            constraints.append(f"Member must satisfy enum value set: [{', '.join(self.choices)}]")
        return f"[{', '.join(constraints)}]"

    def _pattern_sentence(self) -> str:
        """Return the pattern's constraint, without the anchors that it has in AWS's model."""
        anchored = _ANCHORED.fullmatch(self.pattern or "")
        pattern = anchored[1] if anchored else self.pattern
        return f"Member must satisfy regular expression pattern: {pattern}"


def bounds(
    least: int | None = None,
    most: int | None = None,
    pattern: str | None = None,
    choices: Sequence[str] = (),
) -> msgspec.Meta:
    """Return the metadata of a member's constraints, for an annotated type."""
    return msgspec.Meta(extra={_BOUNDS: ValueBounds(least, most, pattern, tuple(choices))})


def _matches(pattern: str, value: str) -> bool:
    return _compiled(pattern).fullmatch(value) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile the model's pattern, with the parts of an ARN limited to text without colons.

    Unchanged, the pattern keeps the process busy for hundreds of milliseconds with one bad ARN.
    """
    return re.compile(pattern.replace(".*:", "[^:]*:"))


class Rule(NamedTuple):
    """Constraints of a value, and of the values inside it."""

    bounds: ValueBounds | None
    required: bool = False
    members: tuple[
        tuple[str, str, "Rule"], ...
    ] = ()  # (field, name on the wire, rule) of a structure
    item: "Rule | None" = None  # of a list
    entry: "tuple[ValueBounds | None, ValueBounds | None] | None" = None  # of a map: keys, values


@lru_cache(maxsize=512)
def rule_of(kind: type[msgspec.Struct]) -> Rule:
    """Return the rule of a shape."""
    return _rule(inspect.type_info(kind))


def _rule(described: inspect.Type) -> Rule:
    extra: Mapping[str, Any] = {}
    if isinstance(described, inspect.Metadata):
        extra, described = described.extra or {}, described.type
    if isinstance(described, inspect.UnionType):  # with None: the member may be missing
        [described] = [one for one in described.types if not isinstance(one, inspect.NoneType)]
    own = Rule(extra.get(_BOUNDS), _REQUIRED in extra)
    match described:
        case inspect.StructType(fields=fields):
            members = tuple((one.name, one.encode_name, _rule(one.type)) for one in fields)
            return own._replace(members=members)
        case inspect.ListType(item_type=item):
            return own._replace(item=_rule(item))
        case inspect.DictType(key_type=key, value_type=value):
            return own._replace(entry=(_rule(key).bounds, _rule(value).bounds))
        case _:
            return own


def check(request: msgspec.Struct, fault: AwsFault) -> None:
    """Raise AwsError, with `fault`, unless every member satisfies its shape's constraints."""
    violations: list[str] = []

    def report(violation: str) -> None:
        violations.append(violation)
        if len(violations) == ERRORS_MAX:
            raise _FaultLimitReached

    with suppress(_FaultLimitReached):
        _check_members(request, rule_of(type(request)), "", report)
    if violations:
        errors = "error" if len(violations) == 1 else "errors"
        raise AwsError(
            fault, f"{len(violations)} validation {errors} detected: {'; '.join(violations)}"
        )


class _FaultLimitReached(Exception):
    """The maximum number of violations has been collected."""


def _check_members(value: Any, rule: Rule, path: str, report: Callable[[str], None]) -> None:
    for field, name, below in rule.members:
        member = getattr(value, field)
        member_path = f"{path}{name[:1].lower()}{name[1:]}"
        if member is None:
            if below.required:
                report(_fault("null", member_path, "Member must not be null"))
            continue
        _check_value(member, below, member_path, report)


def _check_value(value: Any, rule: Rule, path: str, report: Callable[[str], None]) -> None:
    if rule.bounds is not None:
        for violation in rule.bounds.faults(value):
            report(_fault(_format_value(value), path, violation))
    if rule.members:
        _check_members(value, rule, f"{path}.", report)
    elif rule.item is not None and rule.item.members:
        for nth, item in enumerate(value, 1):
            _check_members(item, rule.item, f"{path}.{nth}.member.", report)
    elif rule.item is not None and not _is_valid(rule.item.bounds, value):
        assert rule.item.bounds is not None
        constraint = f"Member must satisfy constraint: {rule.item.bounds.sentence()}"
        report(_fault(_format_value(value), path, constraint))
    elif rule.entry is not None:
        for noun, limit, values in zip(
            ("keys", "value"), rule.entry, (value.keys(), value.values()), strict=True
        ):
            if limit is not None and not _is_valid(limit, values):
                constraint = f"Map {noun} must satisfy constraint: {limit.sentence()}"
                report(_fault(_format_value(value), path, constraint))


def _is_valid(limit: ValueBounds | None, values: Any) -> bool:
    return limit is None or not any(True for value in values for _ in limit.faults(value))


def _fault(value: str, path: str, constraint: str) -> str:
    return f"Value {value} at '{path}' failed to satisfy constraint: {constraint}"


def _format_value(value: Any) -> str:
    """Return the value as AWS prints it, truncated if it is long."""
    match value:
        case bytes():
            size = len(value)
            return f"'java.nio.HeapByteBuffer[pos=0 lim={size} cap={size}]'"
        case list():
            text = f"[{', '.join(_unwrap(one) for one in value[:20])}]"
        case dict():
            pairs = list(value.items())[:20]
            text = f"{{{', '.join(f'{key}={_unwrap(one)}' for key, one in pairs)}}}"
        case _:
            text = str(value)
    return f"'{text[:VALUE_CHARACTERS_MAX]}'"


def _unwrap(value: Any) -> str:
    return value if isinstance(value, str) else type(value).__name__
