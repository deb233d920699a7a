"""Figure of a topic: its routes, grouped by the targets that they copy to."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from api.admin.match_text import MatchCondition, describe_match
from storage.domain import limits
from storage.domain.topics.report import RouteProgress, RouteState
from storage.domain.topics.route import TopicRoute
from storage.domain.topics.targets.named_target import NamedTarget

FIGURE_ROUTES_MAX = 50
"""Routes that a figure shows; of a topic with more, there is a table alone."""

_STATES = {
    RouteState.ACTIVE: ("ok", "Active"),
    RouteState.PAUSED: ("quiet", "Paused"),
    RouteState.FAILING: ("bad", "Failing"),
    RouteState.SHADOW: ("quiet", "Shadow"),
    RouteState.HISTORY: ("info", "Reads history"),
}


class TargetLink(NamedTuple):
    """Target of a route as pages show it; that of a URL is its webhook.

    `name`: of what has a page. `label`: what is shown, which for a URL is the host. `share`: that of a member of a spread, in percent.
    """

    kind: str
    name: str
    label: str
    share: float | None = None

    @classmethod
    def all_of(cls, route: TopicRoute) -> tuple["TargetLink", ...]:
        """Return the target of a route, or the members of a spread."""
        target = route.spec.target
        if target.url is not None:
            return (cls("webhook", route.name.endpoint, urlsplit(target.url).netloc),)
        if target.spread is None:
            return tuple(cls.of(one) for one in target.named)
        total = sum(member.weight for member in target.spread)
        return tuple(cls.of(one, 100 * one.weight / total) for one in target.spread)

    @classmethod
    def of(cls, target: NamedTarget, share: float | None = None) -> "TargetLink":
        """Return a queue, stream or topic that gets a share of a route's messages."""
        return cls(target.kind, target.name, target.label, share)

    @property
    def path(self) -> str:
        """Path of its page."""
        return f"/ui/{self.kind}s/{self.name}"

    @property
    def action(self) -> str:
        """Permission to see it."""
        return f"{self.kind}:list"


class RouteView(NamedTuple):
    """Route as pages show it.

    `match`: the conditions of each alternative. `targets`: one, or the members of a spread.
    """

    progress: RouteProgress
    match: Sequence[Sequence[MatchCondition]]
    targets: Sequence[TargetLink]
    state: tuple[str, str]

    @property
    def name(self) -> str:
        """Name of the route within its topic."""
        return self.progress.route.name.route


class MappedTarget(NamedTuple):
    """Target of a figure, or the members of a spread, and the routes to it."""

    targets: Sequence[TargetLink]
    routes: Sequence[RouteView]


def route_view(progress: RouteProgress) -> RouteView:
    """Return a route with its match, target and state."""
    spec = progress.route.spec
    return RouteView(
        progress, describe_match(spec.match), TargetLink.all_of(progress.route), state_of(progress)
    )


def state_of(progress: RouteProgress) -> tuple[str, str]:
    """Return a route's state: the level to show it in, and its label."""
    if progress.state is RouteState.ACTIVE and progress.lag_ms >= limits.ROUTE_ALERT_LAG_MS:
        return "warn", "Behind"
    return _STATES[progress.state]


def route_map(routes: Iterable[RouteView]) -> list[MappedTarget]:
    """Return the routes by target, in the order of the first route to each."""
    by_target: dict[Any, list[RouteView]] = {}
    for route in routes:
        by_target.setdefault(route.targets, []).append(route)
    return [MappedTarget(targets, of_target) for targets, of_target in by_target.items()]
