# Generated from aio/queries.py by `make sdk`; changes are lost.
"""Queries that run once: their states and rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from millstream_client.core.api.queries.cancel_query import cancel_query
from millstream_client.core.api.queries.get_query import get_query
from millstream_client.core.api.queries.run_query import run_query
from millstream_client.core.models.query_config import QueryConfig
from millstream_client.core.models.query_config_from import QueryConfigFrom
from millstream_client.errors import refusal
from millstream_client.sync.resources import Resource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream_client.core.models.query_out import QueryOut
    from millstream_client.core.models.query_result_out import QueryResultOut
    from millstream_client.core.params import (
        QueryConfigParams,
        QueryRelationConfigParams,
    )
    from millstream_client.sync.transport import Transport

OVER = frozenset({"done", "failed", "cancelled"})
LOOK_S = 0.5
INVALID = 422


class Query(Resource):
    """A query by its id, whether it exists or not. Raises MillstreamError."""

    def status(self) -> QueryResultOut:
        """Return the state, with the rows once it is `done`."""
        return self.transport.call(get_query(self.name))

    def watch(self, every_seconds: float = LOOK_S) -> Iterator[QueryResultOut]:
        """Yield the status repeatedly until the query has ended."""
        while True:
            status = self.status()
            yield status
            if str(status.state) in OVER:
                return
            self.transport.sleep(every_seconds)

    def cancel(self) -> QueryOut:
        """Cancel the query; one that has ended stays as it is."""
        return self.transport.call(cancel_query(self.name))


def run(
    transport: Transport,
    sql: str,
    from_: Mapping[str, QueryRelationConfigParams],
    **config: Unpack[QueryConfigParams],
) -> QueryResultOut:
    """Run a query, and wait for its rows.

    Raises Refused if it is refused, fails or is cancelled.
    """
    relations = {name: dict(fields) for name, fields in from_.items()}
    call = run_query(body=QueryConfig(sql, QueryConfigFrom()))
    query = transport.call(replace(call, json={"sql": sql, "from": relations, **config}))
    if str(query.state) not in OVER:
        for status in Query(transport, query.id).watch():
            query = status
    if str(query.state) != "done":
        detail = query.failure or "The query was cancelled."
        raise refusal(INVALID, {"code": "query_failed", "detail": detail})
    return query
