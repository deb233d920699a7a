# Generated from aio/groups.py by `make sdk`; changes are lost.
"""Consumer groups: members, offsets and bookmarks."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Unpack

from millstream_client import records as wire
from millstream_client.conversing import BYTES_DEFAULT, MESSAGES_DEFAULT
from millstream_client.core.api.groups.commit_offsets import commit_offsets
from millstream_client.core.api.groups.delete_bookmark import delete_bookmark
from millstream_client.core.api.groups.delete_consumer_group import (
    delete_consumer_group,
)
from millstream_client.core.api.groups.get_consumer_group import get_consumer_group
from millstream_client.core.api.groups.get_group_lag import get_group_lag
from millstream_client.core.api.groups.leave_group import leave_group
from millstream_client.core.api.groups.list_bookmarks import list_bookmarks
from millstream_client.core.api.groups.pause_consumer_group import pause_consumer_group
from millstream_client.core.api.groups.put_bookmark import put_bookmark
from millstream_client.core.api.groups.put_consumer_group import put_consumer_group
from millstream_client.core.api.groups.reset_group import reset_group
from millstream_client.core.api.groups.resume_consumer_group import (
    resume_consumer_group,
)
from millstream_client.core.models.commit_in import CommitIn
from millstream_client.core.models.group_config import GroupConfig
from millstream_client.core.models.group_stored import GroupStored
from millstream_client.core.models.reset_in import ResetIn
from millstream_client.core.models.reset_to import ResetTo
from millstream_client.core.types import UNSET, Unset
from millstream_client.errors import Conflict, ItemRefused, NotFound, PartlyRefused
from millstream_client.records import GroupRead, moment_text
from millstream_client.starting import Plan
from millstream_client.sync.definitions import create
from millstream_client.sync.resources import Resource
from millstream_client.sync.subscriptions import Subscription

if TYPE_CHECKING:
    from millstream_client.core.models.bookmark_out import BookmarkOut
    from millstream_client.core.models.committed_out import CommittedOut
    from millstream_client.core.models.group_detail import GroupDetail
    from millstream_client.core.models.group_lag import GroupLag
    from millstream_client.core.models.group_out import GroupOut
    from millstream_client.core.models.reset_out import ResetOut
    from millstream_client.core.params import GroupConfigParams
    from millstream_client.gaps import OnGap

WAIT_S = 20.0


class Group(Resource):
    """A consumer group, whether it exists or not. Raises MillstreamError."""

    # ── Configuration ──

    def create(
        self, stream: str, *, only_new: bool = False, **config: Unpack[GroupConfigParams]
    ) -> GroupStored:
        """Create the group. If it exists with these settings, return it, with `created` False.

        Settings that you leave out are not compared. Raises AlreadyExists, which names the settings that differ; with
        `only_new`, whenever it exists.
        """
        call = put_consumer_group(self.name, body=GroupConfig(stream), if_none_match="*")
        call = replace(call, json={"stream": stream, **config})
        return create(self.transport, call, GroupStored.from_dict, only_new=only_new)

    def apply(
        self, stream: str, *, dry_run: bool = False, **config: Unpack[GroupConfigParams]
    ) -> GroupStored:
        """Create the group, or change its timeouts; `changes` has the fields that differed.

        Settings that you leave out take their defaults. With `dry_run`, nothing is stored.
        """
        call = put_consumer_group(self.name, body=GroupConfig(stream), dry_run=dry_run)
        return self.transport.call(replace(call, json={"stream": stream, **config}))

    def pause(self) -> GroupOut:
        """Pause the group: its members receive no records until it is resumed."""
        return self.transport.call(pause_consumer_group(self.name))

    def resume(self) -> GroupOut:
        """Resume the group."""
        return self.transport.call(resume_consumer_group(self.name))

    def details(self) -> GroupDetail:
        """Return the configuration, the members, and the shards of each member."""
        return self.transport.call(get_consumer_group(self.name))

    def delete(self) -> None:
        """Delete the group, its offsets and its bookmarks."""
        self.transport.call(delete_consumer_group(self.name))

    def lag(self) -> GroupLag:
        """Return the lag in records and in time."""
        return self.transport.call(get_group_lag(self.name))

    # ── Reading as a member ──

    def member(self, name: str | None = None) -> Member:
        """Return a member of the group.

        Members with the same name are one member; the default is a unique name.
        """
        return Member(self, f"member-{uuid.uuid4().hex[:12]}" if name is None else name)

    def subscribe(
        self,
        *,
        filter: Mapping[str, Any] | None = None,
        on_gap: OnGap | None = None,
        messages: int = MESSAGES_DEFAULT,
        bytes: int = BYTES_DEFAULT,
    ) -> Subscription:
        """Subscribe as a member over a WebSocket.

        Yields the records of the member's shards; `commit` commits them. `filter` has the form of a replay's filter; records
        that it does not select are passed over.
        """
        plan = Plan(group=self.name, filter=filter, messages=messages, bytes=bytes)
        return Subscription(self.transport, plan, on_gap)

    def commit_positions(self, positions: Mapping[int, int]) -> None:
        """Commit the next offset to read of each shard, for a group of kind `simple`."""
        offsets = [{"shard": shard, "offset": offset} for shard, offset in positions.items()]
        self._commit({"offsets": offsets})

    def _commit(self, asked: dict[str, Any]) -> None:
        call = replace(commit_offsets(self.name, body=CommitIn()), json=asked)
        done = self.transport.call(call)
        if not done.failed:
            return
        raise PartlyRefused([_result(one) for one in done.offsets])

    # ── Going elsewhere ──

    def reset(
        self,
        to: str = "earliest",
        *,
        time: datetime | None = None,
        offsets: Mapping[int, int] | None = None,
        bookmark: str | None = None,
        shards: list[int] | None = None,
        dry_run: bool = False,
    ) -> ResetOut:
        """Reset the offsets to `earliest`, `latest`, a `time`, `offsets` or a `bookmark`."""
        asked: dict[str, Any] = {"to": to, "dry_run": dry_run, "shards": shards}
        asked |= {"time": None if time is None else moment_text(time), "bookmark": bookmark}
        asked |= {"offsets": None if offsets is None else _by_name(offsets)}
        said = {name: value for name, value in asked.items() if value is not None}
        call = reset_group(self.name, body=ResetIn(ResetTo.EARLIEST))
        return self.transport.call(replace(call, json=said))

    def bookmark(self, name: str, positions: Mapping[int, int] | None = None) -> BookmarkOut:
        """Save the current offsets, or others, as a bookmark."""
        asked = {} if positions is None else {"positions": _by_name(positions)}
        return self.transport.call(replace(put_bookmark(self.name, name), json=asked))

    def bookmarks(self) -> list[BookmarkOut]:
        """List the bookmarks by name."""
        return (self.transport.call(list_bookmarks(self.name))).items

    def delete_bookmark(self, name: str) -> None:
        """Delete a bookmark."""
        self.transport.call(delete_bookmark(self.name, name))


def _result(one: CommittedOut) -> CommittedOut | ItemRefused:
    if isinstance(one.error, Unset):
        return one
    return ItemRefused(str(one.error.code), one.error.detail, one.error.retryable)


def _by_name(positions: Mapping[int, int]) -> dict[str, int]:
    return {str(shard): offset for shard, offset in positions.items()}


class Member:
    """One member of a group, from its first fetch for as long as it keeps fetching.

    Its records are of shards that no other member reads at the same time. Records that it does not commit are delivered
    again, to it or to the next member that reads their shards.
    """

    def __init__(self, group: Group, name: str) -> None:
        self.group = group
        self.name = name
        self._token = ""  # of the last read, by which the service knows this instance
        self._generation: int | None = None

    def fetch(
        self,
        *,
        limit: int = 1000,
        bytes_max: int | None = None,
        wait_seconds: float = WAIT_S,
        after: str = "",
        match: Any = None,
    ) -> GroupRead:
        """Fetch the next records of the member's shards; a repeated call returns the same.

        `after`: a token to continue after, before it is committed. Records that the `match`, as a route has it, does not take
        are passed over. Raises Conflict with the code `stale_generation` when
        another process has begun to read as this member.
        """
        query = {"member": self.name, "after": after, "limit": limit, "bytes_max": bytes_max}
        query |= {"wait_seconds": wait_seconds or None, "token": "" if after else self._token}
        query |= {} if match is None else {"match": json.dumps(match)}
        read = self.group.transport.call(wire.fetch(self.group.name, query))
        self._token, self._generation = read.token, read.generation
        return read

    def commit(self, read: GroupRead) -> None:
        """Commit the records that were read.

        Raises PartlyRefused, with `stale_generation` for shards that were reassigned.
        """
        self.group._commit({"token": read.token})

    def batches(
        self,
        *,
        limit: int = 1000,
        wait_seconds: float = WAIT_S,
        until_empty: bool = False,
        match: Any = None,
    ) -> Iterator[GroupRead]:
        """Yield records in batches, and commit each batch when the next one is requested.

        With `wait_seconds`, ends if nothing arrives within that time. A commit that is rejected because its shards were
        reassigned raises no error here: the new owner receives the records again.
        """
        while True:
            read = self.fetch(limit=limit, wait_seconds=wait_seconds, match=match)
            if read.records:
                yield read
            elif until_empty and not read.gaps:
                return
            if read.records or read.gaps:
                self._commit_if_ours(read)

    def _commit_if_ours(self, read: GroupRead) -> None:
        try:
            self.commit(read)
        except PartlyRefused as refused:
            if not all(_is_fenced(one) for one in refused.results):
                raise
        except (Conflict, NotFound) as refused:
            if refused.code not in FENCED:
                raise

    def leave(self) -> None:
        """Leave the group. The member's shards are reassigned immediately."""
        generation = UNSET if self._generation is None else self._generation
        self._token, self._generation = "", None
        leaving = leave_group(self.group.name, self.name, generation=generation)
        try:
            self.group.transport.call(leaving)
        except Conflict as refused:
            if refused.code not in FENCED:
                raise

    def __enter__(self) -> Member:
        return self

    def __exit__(self, *error: object) -> None:
        self.leave()


FENCED = frozenset({"stale_generation", "member_unknown"})


def _is_fenced(result: Any) -> bool:
    return not isinstance(result, ItemRefused) or result.code in FENCED
