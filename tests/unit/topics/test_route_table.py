"""Property: a table patched change by change decides as the rule over its present routes."""

from hypothesis import given
from hypothesis import strategies as st

from storage.domain.filters.documents import Document
from storage.domain.names import RouteName, TopicName
from storage.domain.topics.route import (
    UNMATCHED,
    RouteMode,
    RouteSpec,
    RouteTarget,
    TopicRoute,
)
from storage.postgres.repositories.routes import RouteChanges
from storage.topics.route_table import RouteTable

SUBJECTS = ("a", "b", "c")
MATCHES = (
    None,
    UNMATCHED,
    *({"subject": subject} for subject in SUBJECTS),
    {"subject": ["a", "b"]},
)

specs = st.builds(
    RouteSpec,
    target=st.just(RouteTarget(queue="q")),
    match=st.sampled_from(MATCHES),
    mode=st.sampled_from(RouteMode),
)
changes = st.lists(st.tuples(st.integers(0, 3), st.none() | specs), max_size=12)


def _route(number: int, name: int, spec: RouteSpec, *, ended: bool = False) -> TopicRoute:
    return TopicRoute(
        name=RouteName(TopicName("orders"), f"r{name}"),
        stream_id="1",
        number=number,
        spec=spec,
        version=1,
        created_at_ms=0,
        changed_at_ms=0,
        until={} if ended else None,
    )


def _takes(spec: RouteSpec, subject: str) -> bool:
    match = spec.match
    return match is None or subject in match["subject"]


def _rule(current: dict[int, TopicRoute], subject: str) -> tuple[list[int], list[int]]:
    """Return the numbers of the routes that take a subject, and of those that deliver it."""
    routes = current.values()
    matching = [r for r in routes if not r.spec.takes_unmatched and _takes(r.spec, subject)]
    if all(route.spec.is_shadow for route in matching):
        matching += [route for route in routes if route.spec.takes_unmatched]
    live = [route.number for route in matching if not route.spec.is_shadow]
    return sorted(route.number for route in matching), sorted(live)


@given(changes)
def test_patched_table_decides_by_the_rule(steps):
    table, current = RouteTable(), dict[int, TopicRoute]()
    for number, (name, spec) in enumerate(steps, start=1):
        changed = []
        if (before := current.pop(name, None)) is not None:
            changed.append(_route(before.number, name, before.spec, ended=True))
        if spec is not None:
            current[name] = _route(number, name, spec)
            changed.append(current[name])
        table.apply(RouteChanges(number, changed, len(current)))
    for subject in SUBJECTS:
        numbers = table.numbers_for(Document(subject, "", (), b"x", {}))
        assert (list(numbers), list(table.live(numbers))) == _rule(current, subject)
