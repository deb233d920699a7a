"""Mirror: streams and queues of another deployment that this one copies.

    origin ──HTTP──▶ puller, leased ──each shard a monotonic producer──▶ streams of the same names here
                                    ──changes and new messages────────▶ queues of the same names, which deliver nothing

The origin's offset is the producer's sequence, so a record is added once however often it is read (ADR 0082). Queues are
copied by their state (ADR 0091).
"""

import re
from fnmatch import fnmatchcase

import msgspec

from storage.domain import limits
from storage.domain.errors import FieldFault, ValidationFailed
from storage.domain.names import ROUTE_PREFIX, TOPIC_PREFIX, MirrorName

MIRROR_FENCE = "mirror"
"""Fencing token of shards and queues that a promotion made read-only, and of copies of queues: only mirrors write them."""

_PATTERN = re.compile(r"[A-Za-z0-9_.\-*?]{1,80}")


class MirrorSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration of a mirror as requested by its owner.

    Streams of topics and queues of routes are not copied: the origin lists neither without their prefix. `key` is an API key of the origin; empty: its callers need none; None: keep the present one. `streams` are globs of
    names, and so are `queues`; one of both is enough. With `groups`, the consumer groups that read them are created here, and moved with those of the origin. With
    `follow_definitions`, settings of the origin's streams and groups that change later are applied here as well.
    """

    url: str
    streams: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    key: str | None = None
    groups: bool = True
    follow_definitions: bool = False
    paused: bool = False

    def check(self) -> None:
        """Raise ValidationFailed with every fault of the specification."""
        faults = [*self._pattern_faults(), *self._key_faults()]
        if faults:
            raise ValidationFailed("The mirror's configuration is invalid.", *faults)

    def _pattern_faults(self) -> list[FieldFault]:
        if not 1 <= len(self.streams) + len(self.queues) <= limits.MIRROR_PATTERNS_MAX:
            detail = f"Specify 1 to {limits.MIRROR_PATTERNS_MAX} patterns of streams and queues"
            return [FieldFault("/streams", detail, "out_of_range")]
        return [
            FieldFault(f"/{field}/{nth}", _pattern_detail(pattern))
            for field, patterns in (("streams", self.streams), ("queues", self.queues))
            for nth, pattern in enumerate(patterns)
            if not _PATTERN.fullmatch(pattern)
        ]

    def _key_faults(self) -> list[FieldFault]:
        key, most = self.key or "", limits.MIRROR_KEY_CHARACTERS_MAX
        if len(key) <= most and key.isascii() and (not key or key.isprintable()) and " " not in key:
            return []
        return [FieldFault("/from/key", f"Must be at most {most} printable ASCII characters")]

    def matches(self, stream: str) -> bool:
        """Return whether a stream of the origin is mirrored."""
        return any(fnmatchcase(stream, pattern) for pattern in self.streams)

    def matches_queue(self, queue: str) -> bool:
        """Return whether a queue of the origin is mirrored."""
        return any(fnmatchcase(queue, pattern) for pattern in self.queues)


def _pattern_detail(pattern: str) -> str:
    """Return why a pattern is invalid."""
    if pattern.startswith(TOPIC_PREFIX):
        return "Topics are not mirrored: mirror a stream that a route of the topic copies to"
    if pattern.startswith(ROUTE_PREFIX):
        return "The queue of a route is not mirrored, since topics are not"
    return "Must be a name, in which * stands for anything and ? for one character"


class Mirror(msgspec.Struct, frozen=True, kw_only=True):
    """A stored mirror. One that was promoted never pulls again."""

    name: MirrorName
    mirror_id: str
    spec: MirrorSpec
    version: int
    created_at_ms: int
    changed_at_ms: int
    promoted_at_ms: int | None = None

    @property
    def is_active(self) -> bool:
        """Return whether it is to pull."""
        return not self.spec.paused and self.promoted_at_ms is None

    def producer_of(self, origin_id: str, shard: int) -> str:
        """Return the id of the monotonic producer that a shard of the origin is here."""
        return f"mirror/{self.mirror_id}/{origin_id}/{shard}"
