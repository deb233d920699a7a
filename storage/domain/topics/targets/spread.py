"""Spread: several targets of one route, of which each message goes to one.

    message ──▶ its key, its subject, or its place in the topic ──▶ weighted rendezvous hash ──▶ member

The choice is a function of the message and the revision of the route, so that a router that repeats copies sends each to the
member that has it (T1), and every reader finds the same.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum

from storage.domain import limits
from storage.domain.errors import FieldFault
from storage.domain.filters.documents import Document
from storage.domain.topics.copy_key import CopyKey, key_of
from storage.domain.topics.routed_message import TransformFailed
from storage.domain.topics.targets.named_target import TARGETS, NamedTarget
from storage.domain.topics.targets.rendezvous import RendezvousHash


class SpreadBy(StrEnum):
    """Part of a message that its member depends on.

    A message without it is spread by its place in the topic.
    """

    KEY = "key"
    """The key of its copy."""

    SUBJECT = "subject"
    """Its subject."""

    RANDOM = "random"
    """Its place in the topic, which is as good as random."""


class SpreadMember(
    NamedTarget, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Member of a spread. It gets messages in proportion to its weight.

    `url` is refused: a webhook delivers what a queue has.
    """

    weight: int = 1
    url: str | None = None


class MemberSelector:
    """Choice of the member that gets a message. `key`: the key of the route's copies."""

    def __init__(self, members: Sequence[SpreadMember], by: SpreadBy, key: CopyKey) -> None:
        self._hash = RendezvousHash([(one.label, one.weight) for one in members])
        self._by = by
        self._key = key

    def member(self, document: Document, place: str) -> int | None:
        """Return the number of the member that a message at a place belongs to.

        None if it depends on the place, and that is empty, as of a message that was not published.
        """
        text = self._text(document) or place
        return self._hash.member(text.encode(errors="surrogatepass")) if text else None

    def _text(self, document: Document) -> str:
        if self._by is SpreadBy.RANDOM:
            return ""
        if self._by is SpreadBy.SUBJECT:
            return document.subject
        try:
            return key_of(self._key, document)
        except TransformFailed:  # its copy fails with the same
            return ""


def spread_faults(members: Sequence[SpreadMember], pointer: str) -> list[FieldFault]:
    """Return the faults of the members of a spread, below a JSON Pointer."""
    if not limits.SPREAD_MEMBERS_MIN <= len(members) <= limits.SPREAD_MEMBERS_MAX:
        detail = f"A spread has {limits.SPREAD_MEMBERS_MIN} to {limits.SPREAD_MEMBERS_MAX} members"
        return [FieldFault(pointer, detail, "out_of_range")]
    return [*_member_faults(members, pointer)]


def _member_faults(members: Sequence[SpreadMember], pointer: str) -> Iterator[FieldFault]:
    labels: set[str] = set()
    for number, member in enumerate(members):
        own = f"{pointer}/{number}"
        if member.url is not None:
            detail = "A URL cannot be a member; let a queue be one, and a webhook post its messages"
            yield FieldFault(f"{own}/url", detail, "not_supported")
            continue
        if sum(getattr(member, kind) is not None for kind in TARGETS) != 1:
            yield FieldFault(own, "Specify exactly one of queue, stream and topic", "exclusive")
            continue
        yield from member.name_faults(own)
        if not 1 <= member.weight <= limits.SPREAD_WEIGHT_MAX:
            detail = f"A weight is 1 to {limits.SPREAD_WEIGHT_MAX}"
            yield FieldFault(f"{own}/weight", detail, "out_of_range")
        if member.label in labels:
            yield FieldFault(own, "The target is a member already", "duplicate")
        labels.add(member.label)
