"""Permissions that a query needs on the streams and views that it reads."""

from storage.access.authorization import Authorizer
from storage.domain.access.permissions import Action, Principal
from storage.domain.errors import Forbidden
from storage.domain.queries.query import SqlQuery


def authorise_query(authorizer: Authorizer, principal: Principal, query: SqlQuery) -> None:
    """Require permission to query and to read each stream and view. Raises Forbidden."""
    streams = [(Action.STREAM_READ, stream) for _, _, stream in query.sources()]
    views = [(Action.VIEW_READ, view) for view in query.views.values()]
    for action, name in (*streams, *views):
        resource = f"{principal.namespace}/{name}"
        authorizer.authorise(principal, Action.QUERY_RUN, resource)
        authorizer.authorise(principal, action, resource)


def may_query(authorizer: Authorizer, principal: Principal, query: SqlQuery) -> bool:
    """Return whether the caller may run a query, and so read the rows that it has."""
    try:
        authorise_query(authorizer, principal, query)
    except Forbidden:
        return False
    return True
