"""Record filters of frames, as in the body of a replay."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from api.http.query import MATCH
from api.native.former_names import former_member
from storage.domain.errors import ValidationFailed
from storage.domain.streams.record_filter import Condition, Filter, Sample


class ConditionIn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Condition on a JSON body: exactly one of `equal_to`, any JSON value, and `exists`."""

    path: str
    equal_to: Any = msgspec.UNSET
    equals: Annotated[Any, former_member("equal_to")] = msgspec.UNSET
    exists: bool | msgspec.UnsetType = msgspec.UNSET

    def to_domain(self) -> Condition:
        """Convert the condition. Raises ValidationFailed where its two names differ."""
        given = [value for value in (self.equal_to, self.equals) if value is not msgspec.UNSET]
        if len(given) == 2 and given[0] != given[1]:
            raise ValidationFailed.at(
                "/filter/body", "equal_to and its former name equals differ", "conflict"
            )
        equals = given[0] if given else msgspec.UNSET
        return Condition(path=self.path, equals=equals, exists=self.exists)


class FilterIn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Filter of records: selects those that match every field that is set."""

    keys: Annotated[
        tuple[str, ...],
        Meta(min_length=1, description="Records with one of these keys. Default: all keys."),
    ] = ()
    headers: dict[str, str] = {}
    body: tuple[ConditionIn, ...] = ()
    sample: Sample | None = None
    match: Annotated[Any, Meta(description=MATCH)] = msgspec.UNSET

    def to_domain(self) -> Filter:
        """Convert the filter. Raises ValidationFailed, MatchInvalid."""
        record_filter = Filter(
            keys=self.keys,
            headers=self.headers,
            body=tuple(condition.to_domain() for condition in self.body),
            sample=self.sample,
            match=self.match,
        )
        record_filter.check()
        return record_filter
