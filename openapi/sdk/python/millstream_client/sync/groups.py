# Generated from aio/groups.py by `make sdk`; changes are lost.
"""A consumer group: readers that share a stream, and how far they are."""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

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
from millstream_client.core.api.groups.put_bookmark import put_bookmark
from millstream_client.core.api.groups.put_consumer_group import put_consumer_group
from millstream_client.core.api.groups.reset_group import reset_group
from millstream_client.core.models.bookmark_out import BookmarkOut
from millstream_client.core.models.commit_in import CommitIn
from millstream_client.core.models.committed_out import CommittedOut
from millstream_client.core.models.group_config import GroupConfig
from millstream_client.core.models.group_detail import GroupDetail
from millstream_client.core.models.group_lag import GroupLag
from millstream_client.core.models.group_out import GroupOut
from millstream_client.core.models.reset_in import ResetIn
from millstream_client.core.models.reset_out import ResetOut
from millstream_client.core.models.reset_to import ResetTo
from millstream_client.core.types import UNSET, Unset
from millstream_client.errors import Conflict, ItemRefused, NotFound, PartlyRefused
from millstream_client.gaps import OnGap
from millstream_client.records import GroupRead, moment_text
from millstream_client.starting import Plan
from millstream_client.sync.subscriptions import Subscription
from millstream_client.sync.transport import Transport

WAIT_S = 20.0


class Group:
    """A group of the service, there or not. Raises MillstreamError."""

    def __init__(self, transport: Transport, name: str) -> None:
        self.transport = transport
        self.name = name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    # ── Configuration ──

    def create(self, stream: str, *, only_new: bool = False, **config: Any) -> GroupOut:
        """Create it, or change its timeouts; with `only_new` raises PreconditionFailed when it is there."""
        call = put_consumer_group(
            self.name, body=GroupConfig(stream), if_none_match="*" if only_new else UNSET
        )
        return self.transport.call(replace(call, json={"stream": stream, **config}))

    def details(self) -> GroupDetail:
        """Its configuration, its members, and which shard each of them reads."""
        return self.transport.call(get_consumer_group(self.name))

    def delete(self) -> None:
        """Delete it, its offsets and its bookmarks."""
        self.transport.call(delete_consumer_group(self.name))

    def lag(self) -> GroupLag:
        """How far behind it is, in records and in time."""
        return self.transport.call(get_group_lag(self.name))

    # ── Reading as a member ──

    def member(self, name: str | None = None) -> "Member":
        """One of its readers. Members that share a name are one: the default is a name of its own."""
        return Member(self, f"member-{uuid.uuid4().hex[:12]}" if name is None else name)

    def subscribe(
        self,
        *,
        on_gap: OnGap | None = None,
        messages: int = MESSAGES_DEFAULT,
        bytes: int = BYTES_DEFAULT,
    ) -> Subscription:
        """As a member over a WebSocket: the records of its shards; `commit` says how far it is."""
        plan = Plan(group=self.name, messages=messages, bytes=bytes)
        return Subscription(self.transport, plan, on_gap)

    def commit_positions(self, positions: Mapping[int, int]) -> None:
        """Of a group of kind `simple`: the next offset to read, by shard."""
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
        """Take it elsewhere: to `earliest`, `latest`, a `time`, `offsets` or a `bookmark`."""
        asked: dict[str, Any] = {"to": to, "dry_run": dry_run, "shards": shards}
        asked |= {"time": None if time is None else moment_text(time), "bookmark": bookmark}
        asked |= {"offsets": None if offsets is None else _by_name(offsets)}
        said = {name: value for name, value in asked.items() if value is not None}
        call = reset_group(self.name, body=ResetIn(ResetTo.EARLIEST))
        return self.transport.call(replace(call, json=said))

    def bookmark(self, name: str, positions: Mapping[int, int] | None = None) -> BookmarkOut:
        """Keep where it is now, or other positions, under a name to come back to."""
        asked = {} if positions is None else {"positions": _by_name(positions)}
        return self.transport.call(replace(put_bookmark(self.name, name), json=asked))

    def bookmarks(self) -> list[BookmarkOut]:
        """Its bookmarks by name."""
        return (self.transport.call(list_bookmarks(self.name))).items

    def delete_bookmark(self, name: str) -> None:
        """Forget a bookmark."""
        self.transport.call(delete_bookmark(self.name, name))


def _result(one: CommittedOut) -> CommittedOut | ItemRefused:
    if isinstance(one.error, Unset):
        return one
    return ItemRefused(str(one.error.code), one.error.detail, one.error.retryable)


def _by_name(positions: Mapping[int, int]) -> dict[str, int]:
    return {str(shard): offset for shard, offset in positions.items()}


class Member:
    """One reader of a group. It is a member from its first fetch on, and as long as it goes on fetching.

    Its records are of shards that no other member reads meanwhile. What it commits counts; without a commit the same
    records come again, to it or to whoever reads its shards next.
    """

    def __init__(self, group: Group, name: str) -> None:
        self.group = group
        self.name = name
        self._token = ""

    def fetch(
        self,
        *,
        limit: int = 1000,
        bytes_max: int | None = None,
        wait_seconds: float = WAIT_S,
        after: str = "",
    ) -> GroupRead:
        """The next records of its shards; the same call again gives the same. `after`: a token to read on behind."""
        query = {"member": self.name, "after": after, "limit": limit, "bytes_max": bytes_max}
        query |= {"wait_seconds": wait_seconds or None}
        return self.group.transport.call(wire.fetch(self.group.name, query))

    def commit(self, read: GroupRead) -> None:
        """What was read is done. Raises PartlyRefused, with `stale_generation` where its shards are another's now."""
        self.group._commit({"token": read.token})

    def batches(
        self, *, limit: int = 1000, wait_seconds: float = WAIT_S, until_empty: bool = False
    ) -> Iterator[GroupRead]:
        """Records as they come, in batches, each committed once the next one is asked for.

        Ends when nothing comes within `wait_seconds`, if it is to end. A commit that is refused because the shards
        went to another member is no error here: the records come again there.
        """
        while True:
            read = self.fetch(limit=limit, wait_seconds=wait_seconds)
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
        """Leave the group: its shards go to others at once."""
        self.group.transport.call(leave_group(self.group.name, self.name))

    def __enter__(self) -> "Member":
        return self

    def __exit__(self, *error: object) -> None:
        self.leave()


FENCED = frozenset({"stale_generation", "member_unknown"})


def _is_fenced(result: Any) -> bool:
    return not isinstance(result, ItemRefused) or result.code in FENCED
