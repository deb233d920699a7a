"""Reads of the rows of views."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import attrs
from msgspec.structs import replace

from storage.concurrency.bounded_cache import BoundedCache
from storage.domain import limits
from storage.domain.definitions import page_limit
from storage.domain.errors import ValidationFailed, ViewBehind, ViewHistoryExpired, ViewNotFound
from storage.domain.names import ViewName
from storage.domain.streams.lineage import FULLY_READ
from storage.domain.views.key_range import KeyRange, key_range
from storage.domain.views.key_text import time_text
from storage.domain.views.progress import (
    RevisionState,
    StreamProgress,
    ViewProgress,
    ViewRevision,
)
from storage.domain.views.rows import RowPage, RowQuery
from storage.postgres.repositories.view_output_rows import StoredRow, ViewOutputRows
from storage.postgres.repositories.views import ViewRows
from storage.views.progress_waiters import ProgressWaiters

_REVISIONS_CACHED_MAX = 1_000  # their queries and plans do not change
_FALLBACK_S = 5.0  # an announcement may be missed, while the listener has no connection


@attrs.define(eq=False, slots=False)
class ViewRowReader:
    """Reader of the rows of active revisions, with the progress that they belong to."""

    _views: ViewRows
    _rows: ViewOutputRows
    _waiters: ProgressWaiters
    _revisions: BoundedCache[ViewName, ViewRevision] = attrs.field(
        factory=lambda: BoundedCache(_REVISIONS_CACHED_MAX), init=False
    )

    async def read(self, name: ViewName, query: RowQuery) -> RowPage:
        """Return rows of a view in the order of their keys.

        Rows and progress are of one snapshot. With `includes`, the read waits for up to `wait_ms`. Raises ViewNotFound,
        ValidationFailed, ViewBehind if the view does not include the record by then, and ViewHistoryExpired for a
        time or batch whose rows are not kept.
        """
        query.check()
        wait_ms = max(0, min(query.wait_ms, limits.VIEW_WAIT_MS))
        deadline_s = _now_s() + wait_ms / limits.SECOND_MS
        while True:
            revision = await self._active(name)
            with self._waiters.waiting(revision.view_id) as advanced:
                while True:
                    advanced.clear()
                    page = await self._page(revision, query)
                    if page is None:
                        break  # it is not active any more
                    if _includes(page.revision, query):
                        return page
                    left_s = deadline_s - _now_s()
                    if left_s <= 0:
                        raise _behind(page.revision, query)
                    with suppress(TimeoutError):
                        async with asyncio.timeout(min(left_s, _FALLBACK_S)):
                            await advanced.wait()
            self._revisions.pop(name, None)

    async def read_one(
        self, name: ViewName, key: Sequence[str]
    ) -> tuple[ViewRevision, StoredRow | None]:
        """Return the row with a key and its sources, None if there is none, and its revision.

        Raises ViewNotFound, ValidationFailed for another key than that of one row.
        """
        while True:
            revision = await self._active(name)
            columns = len(revision.plan.key)
            if len(key) != columns:
                detail = f"Must have the values of all {columns} columns of the key"
                raise ValidationFailed.at("/key", detail)
            keys = key_range(RowQuery(key=tuple(key)), revision.plan)
            read = await self._rows.find(revision, keys)
            if read is not None:
                progress, row = read
                return replace(revision, progress=progress), row
            self._revisions.pop(name, None)

    async def progress(self, name: ViewName) -> ViewRevision:
        """Return the active revision of a view, with its present progress. Raises ViewNotFound."""
        while True:
            revision = await self._active(name)
            if (read := await self._rows.progress(revision)) is not None:
                return replace(revision, progress=read)
            self._revisions.pop(name, None)

    async def snapshot(self, name: ViewName, rows_max: int, bytes_max: int) -> RowPage | None:
        """Return all rows of a view, of one batch; None if they are more than that.

        Raises ViewNotFound.
        """
        while True:
            revision = await self._active(name)
            read = await self._rows.snapshot(revision, rows_max + 1, bytes_max)
            if read is None:
                self._revisions.pop(name, None)
                continue
            progress, rows = read
            if len(rows) > rows_max or sum(map(len, rows)) > bytes_max:
                return None
            return RowPage(rows=tuple(rows), revision=replace(revision, progress=progress))

    async def _active(self, name: ViewName) -> ViewRevision:
        """Return the revision that is active, or was: a read of its rows says which.

        Raises ViewNotFound.
        """
        if (cached := self._revisions.get(name)) is not None:
            return cached
        for _, revision in await self._views.with_revisions(name):
            if revision.state is RevisionState.ACTIVE:
                self._revisions[name] = revision
                return revision
        raise ViewNotFound(f"View '{name.name}' does not exist.")

    async def _page(self, revision: ViewRevision, query: RowQuery) -> RowPage | None:
        """Return rows of a revision; None if it is not active any more."""
        keys, limit = key_range(query, revision.plan), page_limit(query.limit)
        if query.is_of_history:
            read = await self._read_history(revision, query, keys, limit + 1)
        else:
            read = await self._rows.read(revision, keys, limit + 1)
        if read is None:
            return None
        progress, rows = read
        page = rows[:limit]
        next_key = page[-1].key if len(rows) > limit else None
        return RowPage(
            rows=tuple(row.output for row in page),
            revision=replace(revision, progress=progress),
            next_key=next_key,
        )

    async def _read_history(
        self, revision: ViewRevision, query: RowQuery, keys: KeyRange, limit: int
    ) -> tuple[ViewProgress, list[StoredRow]] | None:
        progress = await self._rows.batch_at(revision.revision_id, query.at_ms, query.at_batch)
        if progress is not None:
            rows = await self._rows.read_history(revision, keys, limit, progress.batch)
            return None if rows is None else (progress, rows)
        is_active, since_ms = await self._rows.history_since(revision.revision_id)
        if is_active:
            raise _expired(since_ms)
        return None


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _includes(revision: ViewRevision, query: RowQuery) -> bool:
    """Return whether the progress of a revision includes the record of a query.

    A shard without a position that has a mark was read to its end, and its children are read. Raises ValidationFailed.
    """
    if query.includes is None:
        return True
    shard, offset, _ = query.includes
    progress = _progress_of(revision, query.includes.relation)
    position = progress.positions.get(shard)
    if position is None:
        return shard in progress.marks
    return position == FULLY_READ or position > offset


def _progress_of(revision: ViewRevision, relation: str) -> StreamProgress:
    """Return the progress in a stream of a revision, or in its only one.

    Raises ValidationFailed.
    """
    streams = {followed.relation: followed.progress for followed in revision.streams}
    if not relation and len(streams) == 1:
        return next(iter(streams.values()))
    if relation not in streams:
        names = " or ".join(f"'{name}:'" for name in streams)
        detail = f"Put the name of the stream in the query before the shard: {names}"
        raise ValidationFailed.at("/after", detail, "required" if not relation else "not_found")
    return streams[relation]


def _expired(since_ms: int | None) -> ViewHistoryExpired:
    if since_ms is None:
        return ViewHistoryExpired("The view has no earlier rows; `history_seconds` keeps them.")
    detail = f"The view has rows from {time_text(since_ms)} on, and none of that time or batch."
    return ViewHistoryExpired(detail)


def _behind(revision: ViewRevision, query: RowQuery) -> ViewBehind:
    assert query.includes is not None
    shard, offset, relation = query.includes
    position = _progress_of(revision, relation).positions.get(shard, 0)
    detail = f"The view does not include offset {offset} of shard {shard} yet; its position is {position}."
    return ViewBehind(detail, shard=shard, position=position)
