"""Permissions that a view needs on what its query reads."""

from storage.access.authorization import Authorizer
from storage.domain.access.permissions import Action, Principal
from storage.domain.views.view import ViewQuery


def authorise_reads(authorizer: Authorizer, principal: Principal, query: ViewQuery) -> None:
    """Require permission to read each stream and view of a query. Raises Forbidden."""
    streams = [(Action.STREAM_READ, stream) for stream in query.streams]
    views = [(Action.VIEW_READ, view) for view in query.views]
    for action, name in (*streams, *views):
        authorizer.authorise(principal, action, f"{principal.namespace}/{name}")
