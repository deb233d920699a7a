"""What the members of an input may be, and AWS's words for one that is not.

    1 validation error detected: Value '' at 'streamName' failed to satisfy constraint: Member must …

A shape says it beside the type, as the service's model does; types themselves are the decoder's matter.

    stream_name: Annotated[str | None, text(1, 128, "[a-z]+"), REQUIRED] = None
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from api.aws.protocol.errors import AwsError, Fault

ERRORS_MAX = 10  # told at once
SHOWN_CHARACTERS_MAX = 256  # of a value
_BOUNDS, _REQUIRED = "bounds", "required"

REQUIRED = msgspec.Meta(extra={_REQUIRED: True})
"""The member must be there."""


class Bounds(NamedTuple):
    """The least and the most of a number, or of a length; a pattern of the whole text; the words allowed."""

    least: int | None = None
    most: int | None = None
    pattern: str | None = None
    choices: tuple[str, ...] = ()

    def faults(self, value: Any) -> Iterator[str]:
        """What the value does not satisfy."""
        if self.choices and value not in self.choices:
            yield f"Member must satisfy enum value set: [{', '.join(self.choices)}]"
        number = value if isinstance(value, int) else len(value)
        noun = "value" if isinstance(value, int) else "length"
        too_much = self.most is not None and number > self.most
        if self.pattern is not None and not too_much and not _matches(self.pattern, value):
            yield f"Member must satisfy regular expression pattern: {self.pattern}"
        if too_much:
            yield f"Member must have {noun} less than or equal to {self.most}"
        if self.least is not None and number < self.least:
            yield f"Member must have {noun} greater than or equal to {self.least}"

    def sentence(self) -> str:
        """All of it, as it is told of the items of a collection."""
        told = []
        if self.most is not None:
            told.append(f"Member must have length less than or equal to {self.most}")
        if self.least is not None:
            told.append(f"Member must have length greater than or equal to {self.least}")
        if self.pattern is not None:
            told.append(f"Member must satisfy regular expression pattern: {self.pattern}")
        if self.choices:
            told.append(f"Member must satisfy enum value set: [{', '.join(self.choices)}]")
        return f"[{', '.join(told)}]"


def bounds(
    least: int | None = None,
    most: int | None = None,
    pattern: str | None = None,
    choices: Sequence[str] = (),
) -> msgspec.Meta:
    """Beside a member's type: what it may be."""
    return msgspec.Meta(extra={_BOUNDS: Bounds(least, most, pattern, tuple(choices))})


def _matches(pattern: str, value: str) -> bool:
    return _compiled(pattern).fullmatch(value) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    """The model's pattern, whose parts of an ARN hold no colon: as it stands, one bad ARN keeps the process busy
    for hundreds of milliseconds."""
    return re.compile(pattern.replace(".*:", "[^:]*:"))


class Rule(NamedTuple):
    """What is asked of one value, and of those inside it."""

    bounds: Bounds | None
    required: bool = False
    members: tuple[
        tuple[str, str, "Rule"], ...
    ] = ()  # (field, name on the wire, rule) of a structure
    item: "Rule | None" = None  # of a list
    entry: "tuple[Bounds | None, Bounds | None] | None" = None  # of a map: keys, values


@lru_cache(maxsize=512)
def rule_of(kind: type[msgspec.Struct]) -> Rule:
    """The rule of a shape."""
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


def check(asked: msgspec.Struct, fault: Fault) -> None:
    """Raise AwsError, with `fault`, unless every member is what its shape says it may be."""
    told: list[str] = []

    def tell(words: str) -> None:
        told.append(words)
        if len(told) == ERRORS_MAX:
            raise _Enough

    with suppress(_Enough):
        _check_members(asked, rule_of(type(asked)), "", tell)
    if told:
        errors = "error" if len(told) == 1 else "errors"
        raise AwsError(fault, f"{len(told)} validation {errors} detected: {'; '.join(told)}")


class _Enough(Exception):
    """As many faults were found as are told."""


def _check_members(value: Any, rule: Rule, path: str, tell: Callable[[str], None]) -> None:
    for field, name, below in rule.members:
        member = getattr(value, field)
        place = f"{path}{name[:1].lower()}{name[1:]}"
        if member is None:
            if below.required:
                tell(_fault("null", place, "Member must not be null"))
            continue
        _check_value(member, below, place, tell)


def _check_value(value: Any, rule: Rule, place: str, tell: Callable[[str], None]) -> None:
    if rule.bounds is not None:
        for one in rule.bounds.faults(value):
            tell(_fault(_shown(value), place, one))
    if rule.members:
        _check_members(value, rule, f"{place}.", tell)
    elif rule.item is not None and rule.item.members:
        for nth, item in enumerate(value, 1):
            _check_members(item, rule.item, f"{place}.{nth}.member.", tell)
    elif rule.item is not None and not _all_fine(rule.item.bounds, value):
        assert rule.item.bounds is not None
        words = f"Member must satisfy constraint: {rule.item.bounds.sentence()}"
        tell(_fault(_shown(value), place, words))
    elif rule.entry is not None:
        for noun, limit, some in zip(
            ("keys", "value"), rule.entry, (value.keys(), value.values()), strict=True
        ):
            if limit is not None and not _all_fine(limit, some):
                words = f"Map {noun} must satisfy constraint: {limit.sentence()}"
                tell(_fault(_shown(value), place, words))


def _all_fine(limit: Bounds | None, values: Any) -> bool:
    return limit is None or not any(True for value in values for _ in limit.faults(value))


def _fault(value: str, place: str, words: str) -> str:
    return f"Value {value} at '{place}' failed to satisfy constraint: {words}"


def _shown(value: Any) -> str:
    """The value as AWS shows it, cut where it is long."""
    match value:
        case bytes():
            size = len(value)
            return f"'java.nio.HeapByteBuffer[pos=0 lim={size} cap={size}]'"
        case list():
            text = f"[{', '.join(_bare(one) for one in value[:20])}]"
        case dict():
            pairs = list(value.items())[:20]
            text = f"{{{', '.join(f'{key}={_bare(one)}' for key, one in pairs)}}}"
        case _:
            text = str(value)
    return f"'{text[:SHOWN_CHARACTERS_MAX]}'"


def _bare(value: Any) -> str:
    return value if isinstance(value, str) else type(value).__name__
