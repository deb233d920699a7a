# Generated from aio/views.py by `make sdk`; changes are lost.
"""Views: configuration, progress, rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

from millstream_client.core.api.views.delete_view import delete_view
from millstream_client.core.api.views.get_view import get_view
from millstream_client.core.api.views.list_view_backtests import list_view_backtests
from millstream_client.core.api.views.list_view_batches import list_view_batches
from millstream_client.core.api.views.list_view_sources import list_view_sources
from millstream_client.core.api.views.pause_view import pause_view
from millstream_client.core.api.views.put_view import put_view
from millstream_client.core.api.views.read_view_rows import read_view_rows
from millstream_client.core.api.views.rebuild_view import rebuild_view
from millstream_client.core.api.views.resume_view import resume_view
from millstream_client.core.api.views.roll_back_view import roll_back_view
from millstream_client.core.api.views.start_view_backtest import start_view_backtest
from millstream_client.core.models.row_order import RowOrder
from millstream_client.core.models.view_config import ViewConfig
from millstream_client.core.models.view_config_from import ViewConfigFrom
from millstream_client.core.models.view_stored import ViewStored
from millstream_client.core.types import UNSET
from millstream_client.sync.backtests import ViewBackTest
from millstream_client.sync.definitions import create
from millstream_client.sync.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from millstream_client.calls import Call
    from millstream_client.core.models.view_back_test_out import ViewBackTestOut
    from millstream_client.core.models.view_batch_out import ViewBatchOut
    from millstream_client.core.models.view_detail import ViewDetail
    from millstream_client.core.models.view_out import ViewOut
    from millstream_client.core.models.view_rows_out import ViewRowsOut
    from millstream_client.core.models.view_sources_out import ViewSourcesOut
    from millstream_client.core.params import ViewConfigParams, ViewInputConfigParams

ROWS = 1_000
SOURCES = 100
BATCHES = 100


class View(Resource):
    """A view, whether it exists or not. Raises MillstreamError.

    `from_` has the stream under its name in the query, with the fields of the REST API: `{"c": {"stream": "clicks", "columns":
    "page string"}}`.
    """

    def create(
        self,
        sql: str,
        from_: Mapping[str, ViewInputConfigParams],
        *,
        only_new: bool = False,
        **config: Unpack[ViewConfigParams],
    ) -> ViewStored:
        """Create the view. If it exists with these settings, return it, with `created` False.

        `output` has the columns of its rows; both it and `key` are empty if it exists: see `details`. Settings that you leave out are not compared. Raises AlreadyExists, which names the settings
        that differ; with `only_new`, whenever it exists. Raises Refused for a query that is not accepted.
        """
        call = self._put(sql, from_, config, if_none_match="*")
        return create(self.transport, call, _existing, only_new=only_new)

    def apply(
        self,
        sql: str,
        from_: Mapping[str, ViewInputConfigParams],
        *,
        dry_run: bool = False,
        **config: Unpack[ViewConfigParams],
    ) -> ViewStored:
        """Create the view, or replace its configuration; `changes` has the fields that differed.

        Settings that you leave out take their defaults. Another query is another revision: the present rows answer until it has
        caught up. With `dry_run`, nothing is stored.
        """
        return self.transport.call(self._put(sql, from_, config, dry_run=dry_run))

    def _put(
        self,
        sql: str,
        from_: Mapping[str, ViewInputConfigParams],
        config: ViewConfigParams,
        **conditions: Any,
    ) -> Call[ViewStored]:
        inputs = {name: dict(fields) for name, fields in from_.items()}
        call = put_view(self.name, body=ViewConfig(sql, ViewConfigFrom()), **conditions)
        return replace(call, json={"sql": sql, "from": inputs, **config})

    def start_backtest(
        self,
        sql: str,
        from_: Mapping[str, ViewInputConfigParams],
        **config: Unpack[ViewConfigParams],
    ) -> ViewBackTest:
        """Start a job that evaluates a configuration over the records that the view includes.

        Nothing is stored in the view and nothing is sent. The result has the rows that differ, and the messages that the sinks would have
        got. If the same back-test runs already, return that job; raises Refused if another one does.
        """
        inputs = {name: dict(fields) for name, fields in from_.items()}
        call = start_view_backtest(self.name, body=ViewConfig(sql, ViewConfigFrom()))
        request = {"sql": sql, "from": inputs, **config}
        started = self.transport.call(replace(call, json=request))
        return self.backtest(started.id)

    def backtest(self, id: str) -> ViewBackTest:
        """Return a back-test of the view by its id; no call is made."""
        return ViewBackTest(self.transport, self.name, id)

    def backtests(self, limit: int = BATCHES) -> list[ViewBackTestOut]:
        """Return the last back-tests, newest first."""
        return (self.transport.call(list_view_backtests(self.name, limit=limit))).items

    def details(self) -> ViewDetail:
        """Return the configuration, the plan, the state, and what the rows include."""
        return self.transport.call(get_view(self.name))

    def read(
        self,
        *,
        key: Iterable[str] = (),
        prefix: str = "",
        window_from: datetime | None = None,
        window_to: datetime | None = None,
        latest: bool = False,
        descending: bool = False,
        limit: int = ROWS,
        cursor: str = "",
        after: str = "",
        wait_seconds: float = 0,
        at: datetime | None = None,
        at_batch: int | None = None,
    ) -> ViewRowsOut:
        """Return one page of rows in the order of their keys, with `as_of` and `next_cursor`.

        `key` has values of the first columns of the key, `prefix` the beginning of the next one, a text. The windows of rows end after `window_from` and
        begin before `window_to`; with `latest`, only the newest one of each key is returned. `after`: `shard:offset` of a record that the rows must include;
        the call waits for it up to `wait_seconds`, and is then repeated like others. Raises Unavailable if they still do not. `at` or `at_batch`: rows as they
        were at a time or after a batch, for a view with `history_seconds`. Raises Gone if they are not kept.
        """
        call = read_view_rows(
            self.name,
            key=list(key) or UNSET,
            prefix=prefix,
            window_from=window_from or UNSET,
            window_to=window_to or UNSET,
            latest=latest,
            order=RowOrder.DESC if descending else RowOrder.ASC,
            limit=limit,
            cursor=cursor,
            after=after,
            wait_seconds=wait_seconds,
            at=at or UNSET,
            at_batch=UNSET if at_batch is None else at_batch,
        )
        return self.transport.call(call)

    def roll_back(self) -> ViewDetail:
        """Return to the former revision, which a view with `keep_former_seconds` has.

        It answers as soon as both include the same records, which takes about a second. Raises NotFound without one.
        """
        return self.transport.call(roll_back_view(self.name))

    def rebuild(self) -> ViewDetail:
        """Build the rows again from the view's `start`, beside the present ones.

        When the new revision replaces the present one, `report` of `details` compares their rows.
        """
        return self.transport.call(rebuild_view(self.name))

    def read_sources(
        self, *, key: Iterable[str] = (), limit: int = SOURCES, cursor: str = ""
    ) -> ViewSourcesOut:
        """Return a row, the ranges of its sources, and one page of the records in them.

        `key` has the values of all columns of the key. For views whose `sources` are `range`. Raises Unavailable while no worker
        finds the records.
        """
        call = list_view_sources(self.name, key=list(key) or UNSET, limit=limit, cursor=cursor)
        return self.transport.call(call)

    def sources(self, *, key: Iterable[str] = ()) -> Iterator[dict[str, Any]]:
        """Yield the records that contributed to a row, page by page, as reads of streams do."""
        values = list(key)
        cursor: str | None = ""
        while cursor is not None:
            page = self.read_sources(key=values, cursor=cursor)
            for record in page.records:
                yield record.to_dict()
            cursor = page.next_cursor

    def rows(
        self,
        *,
        key: Iterable[str] = (),
        prefix: str = "",
        window_from: datetime | None = None,
        window_to: datetime | None = None,
        latest: bool = False,
        descending: bool = False,
        after: str = "",
        wait_seconds: float = 0,
        at: datetime | None = None,
        at_batch: int | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Yield rows in the order of their keys, page by page; each page is as of its own batch.

        The parameters are those of `read`. With `at` or `at_batch` all pages are of the same batch.
        """
        values = list(key)
        cursor: str | None = ""
        while cursor is not None:
            page = self.read(
                key=values,
                prefix=prefix,
                window_from=window_from,
                window_to=window_to,
                latest=latest,
                descending=descending,
                cursor=cursor,
                after=after,
                wait_seconds=wait_seconds,
                at=at,
                at_batch=at_batch,
            )
            for row in page.rows:
                yield row.to_dict()
            cursor = page.next_cursor

    def batches(self, limit: int = BATCHES) -> list[ViewBatchOut]:
        """Return the last batches, newest first."""
        return (self.transport.call(list_view_batches(self.name, limit=limit))).items

    def pause(self) -> ViewOut:
        """Pause the view: its rows stay as they are."""
        return self.transport.call(pause_view(self.name))

    def resume(self) -> ViewOut:
        """Resume the view where it was, also if it had stopped."""
        return self.transport.call(resume_view(self.name))

    def delete(self) -> None:
        """Delete the view and its rows; the stream stays."""
        self.transport.call(delete_view(self.name))


def _existing(fields: dict[str, Any]) -> ViewStored:
    return ViewStored.from_dict({**fields, "output": [], "key": []})
