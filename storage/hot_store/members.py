"""Verbs of the members of a replica set, each a store that may be away, hang or be fenced.

A method is called for several members at once and returns those that answered in time, so that one that hangs delays no
other. Every change of what a member follows names a term, and is refused by a member that has promised a later one.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Protocol

import msgspec

from storage.domain.replication.replica_set import StorePosition


class ReplicaLink(msgspec.Struct, frozen=True, kw_only=True):
    """A replica as its primary sees it. `address` has the numeric host of its connection.

    `lag_bytes`: sent and not acknowledged. `silent_ms`: since its last acknowledgement.
    """

    address: str
    is_online: bool
    lag_bytes: int
    silent_ms: int


class MemberFacts(msgspec.Struct, frozen=True, kw_only=True):
    """State that a member reports.

    `follows`: address of its primary; None for one that follows nobody, and for a primary. `is_syncing`: it receives a full
    copy. `silent_ms`: since it heard from its primary. `promise`: the term it has promised itself to. `has_data`: it has keys of its own or of others.
    `full_resyncs`: complete copies that it has sent to replicas since it started. `time_ms`: of its clock.
    """

    is_primary: bool
    follows: str | None
    is_linked: bool
    is_syncing: bool
    silent_ms: int
    promise: int
    position: StorePosition
    has_data: bool
    replicas: tuple[ReplicaLink, ...]
    version: str
    run_id: str
    memory_used_bytes: int
    memory_max_bytes: int
    full_resyncs: int
    time_ms: int


class Promise(msgspec.Struct, frozen=True):
    """Answer to a promise. `highest`: the highest term or epoch that the member knew before.

    Of an accepted one, `position` was read after the member had ceased to follow anybody. `offset`: of its replication, by
    which members at one position differ, as the primary's pings count too.
    """

    is_accepted: bool
    highest: int
    position: StorePosition
    offset: int = 0


class WriteOutcome(StrEnum):
    """Outcome of a write to the primary that is to be confirmed by replicas."""

    CONFIRMED = "confirmed"
    UNCONFIRMED = "unconfirmed"
    NOT_PRIMARY = "not_primary"
    UNREACHABLE = "unreachable"


class MemberSteps(Protocol):
    """Steps of a change of the primary at the members, by their addresses."""

    async def promise(
        self, addresses: Iterable[str], term: int, *, again: bool = False
    ) -> Mapping[str, Promise]:
        """Have members promise a term, follow nobody and drop their clients; return the answers.

        A member that knows the term or a later one refuses. With `again` it refuses only a later one, and one that has
        promised this term already is not touched.
        """
        ...

    async def attach(self, addresses: Iterable[str], primary: str, term: int) -> frozenset[str]:
        """Have members follow a primary, if `term` is their promise; return those that do.

        Members that follow it already are not touched.
        """
        ...

    async def promote(self, address: str, term: int, min_insync: int) -> bool:
        """Make the member a primary of the epoch `term`, if that is its promise.

        It keeps how many members a write of the epoch needs, for readers without a connection to Postgres.
        """
        ...


class StoreMembers(MemberSteps, Protocol):
    """The members of a replica set, by their addresses."""

    def normalize(self, address: str) -> str:
        """Return an address as `host:port`. Raises ValueError."""
        ...

    async def observe(self, addresses: Iterable[str]) -> Mapping[str, MemberFacts]:
        """Return the state of those that answer."""
        ...

    async def numeric_addresses(self, addresses: Iterable[str]) -> Mapping[str, str]:
        """Return the members by the numeric addresses that their hosts resolve to."""
        ...

    async def detach(self, addresses: Iterable[str], term: int) -> frozenset[str]:
        """Have stores that are no members follow nobody; return those that did.

        They promise the term, as far as they know no later one. A full copy has given them the primary's promise, so unlike a
        member's, an equal promise does not say that the store follows nobody.
        """
        ...

    async def store_min_insync(self, address: str, epoch: int, count: int) -> None:
        """Keep a changed count in the primary of an epoch, for readers without Postgres.

        A primary that does not answer keeps the former count, with which such readers wait for more members.
        """
        ...

    async def confirm(self, address: str, epoch: int, replicas: int, wait_ms: int) -> WriteOutcome:
        """Write to the primary of an epoch, and wait until replicas have it on disk."""
        ...
