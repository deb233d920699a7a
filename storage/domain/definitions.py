"""Rules that all definitions share: names in lists, versions, ranges, outcome of a put."""

from typing import Any, Generic, NamedTuple, Protocol, TypedDict, TypeVar, cast

from msgspec.structs import replace

from storage.domain import limits
from storage.domain.errors import FieldFault, PreconditionFailed

ANY_VERSION = -1
"""Version seen by a caller that only requires the object to exist."""
HIDDEN_VALUE = "(secret)"
OTHER_HIDDEN_VALUE = "(another secret)"
"""Placeholders of a secret, and of one that a put replaces."""


class Spec(Protocol):
    """Specification of an object, as requested by its owner."""

    def check(self) -> None:
        """Raise ValidationFailed with every fault of the specification."""


class StoredDefinition(Protocol):
    """A stored object: its name, its specification, and its version, which counts from 1."""

    @property
    def name(self) -> Any: ...
    @property
    def spec(self) -> Any: ...
    @property
    def version(self) -> int: ...
    @property
    def created_at_ms(self) -> int: ...
    @property
    def changed_at_ms(self) -> int: ...


class _Versioned(Protocol):
    @property
    def version(self) -> int: ...
    @property
    def changed_at_ms(self) -> int: ...


P = TypeVar("P")
V = TypeVar("V", bound=_Versioned)


class PutOptions(TypedDict, total=False):
    """Options of a put.

    `if_match`: the version that the caller has seen. `create_only`: refuse to replace. `dry_run`: do all but keep the
    result. `replace_pause`: `paused` does not stay as it is.
    """

    if_match: int | None
    create_only: bool
    dry_run: bool
    replace_pause: bool


class Put(NamedTuple, Generic[P]):
    """Definition after a put, and the one that it replaced: None if it was created."""

    definition: P
    created: bool
    before: P | None


def check_version(definition: _Versioned | None, if_match: int | None) -> None:
    """Raise PreconditionFailed if the caller has seen another version than the current one."""
    if if_match is None:
        return
    if definition is None:
        raise PreconditionFailed("The object does not exist.")
    if if_match not in (ANY_VERSION, definition.version):
        raise PreconditionFailed(
            f"The current version is {definition.version}, not {if_match}.",
            version=definition.version,
        )


def with_changes(value: P, **changes: Any) -> P:
    """Return a definition or specification with other values of some fields."""
    return cast("P", replace(cast("Any", value), **changes))


def next_version(definition: V, now_ms: int, **changes: Any) -> V:
    """Return the definition with changes, as its next version."""
    changed_at_ms = max(now_ms, definition.changed_at_ms)
    return with_changes(
        definition, version=definition.version + 1, changed_at_ms=changed_at_ms, **changes
    )


def could_be_name(text: str) -> bool:
    """Return whether names could sort beside the text: printable ASCII.

    Other text is invalid in Postgres, or sorts elsewhere.
    """
    return text.isascii() and (text == "" or text.isprintable())


def page_limit(limit: int) -> int:
    """Return a page's size within what is allowed."""
    return max(1, min(limit, limits.PAGE_ITEMS_MAX))


def check_range(pointer: str, value: int, low: int, high: int) -> list[FieldFault]:
    """Return a fault at `pointer` unless low <= value <= high; none otherwise."""
    if low <= value <= high:
        return []
    return [FieldFault(pointer, f"must be {low} to {high}", "out_of_range")]


def check_seconds(pointer: str, value_ms: int, low_ms: int, high_ms: int) -> list[FieldFault]:
    """Like `check_range`, for a time in ms that the fault states in seconds."""
    if low_ms <= value_ms <= high_ms:
        return []
    low, high = low_ms / limits.SECOND_MS, high_ms / limits.SECOND_MS
    return [FieldFault(pointer, f"must be {low:.15g} to {high:.15g}", "out_of_range")]


def tag_faults(tags: dict[str, str]) -> list[FieldFault]:
    """Return the validation faults of a resource's tags."""
    faults = []
    if len(tags) > limits.TAGS_MAX:
        faults.append(FieldFault("/tags", f"at most {limits.TAGS_MAX} tags", "too_many"))
    for key, value in tags.items():
        if (
            not 0 < len(key) <= limits.TAG_KEY_CHARACTERS_MAX
            or len(value) > limits.TAG_VALUE_CHARACTERS_MAX
        ):
            faults.append(
                FieldFault(
                    f"/tags/{key}",
                    "a key must be 1 to 128 characters, a value at most 256",
                    "too_long",
                )
            )
    return faults
