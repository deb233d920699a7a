"""Match schemas: explanations for a message, and back-tests on all of a topic."""

from collections.abc import Iterable
from typing import Annotated, Any, Self

from pydantic import Field

from api.native.fields import rfc3339
from api.rest.field_map import Mapped
from api.rest.route_copies import SpreadMemberConfig
from api.rest.schema_base import Config, Time
from api.rest.topic_fields import ExaminedMessage, MatchField
from storage.domain.filters.matches import Cost, FailedCondition
from storage.domain.topics.report import MessageRoute, MessageRouteState, RouteExplanation
from storage.domain.topics.targets.spread import SpreadMember

MemberField = Annotated[
    SpreadMemberConfig | None,
    Field(
        description="Of a spread: the member that gets the message. It is left out for a message that was not published and has no "
        "key or subject to spread it by.",
        exclude_if=lambda value: value is None,
    ),
]

# Why a message is taken


class FailedConditionOut(Mapped):
    """A condition that a message does not meet."""

    match: Annotated[int, Field(description="Number of the match in the list, from 0.")]
    path: Annotated[str, Field(description="Field that it reads, such as `body.total`.")]
    expected: Annotated[Any, Field(description="The condition.")]
    actual: Annotated[list[Any], Field(description="Values of the message; empty if it has none.")]


class RouteExplanationOut(Mapped):
    """Explanation of whether a route takes a message."""

    route: str
    matches: bool
    failed: list[FailedConditionOut]
    member: MemberField = None

    @classmethod
    def of(cls, explanation: RouteExplanation) -> Self:
        """Return the result of a route for a message."""
        return cls(
            route=explanation.route.name.route,
            matches=explanation.matches,
            failed=failed_out(explanation.failed),
            member=_member_out(explanation.member),
        )


def _member_out(member: SpreadMember | None) -> SpreadMemberConfig | None:
    return None if member is None else SpreadMemberConfig.from_domain(member)


def failed_out(failed: Iterable[FailedCondition]) -> list[FailedConditionOut]:
    """Return conditions that a message does not meet."""
    return [FailedConditionOut.from_domain(condition) for condition in failed]


class ExplainRequest(Config):
    """A message that is not published, or the id of one that was. Exactly one is given."""

    message: ExaminedMessage | None = None
    id: str | None = None
    route: Annotated[str | None, Field(description="Explain this route alone.")] = None


class Explanation(Mapped):
    """Results of the present routes of a topic for a message."""

    subject: str
    matches: Annotated[list[str], Field(description="Names of the routes that take the message.")]
    routes: Annotated[
        list[RouteExplanationOut],
        Field(description="Each route, those that take the message first; at most 1,000."),
    ]
    complete: Annotated[bool, Field(description="False if there are more routes than shown.")]


class MessageRouteOut(Mapped):
    """A route that takes a message, by the decision when it was accepted."""

    route: Annotated[str | None, Field(description="Name of the route; null once it is forgotten.")]
    number: Annotated[int, Field(description="Number of the route's revision.")]
    state: Annotated[
        MessageRouteState,
        Field(
            description="`waiting`: the target may not have it yet. `finished`: the target or the dead-letter queue has it, or it is "
            "counted as dropped. `shadow`: the route delivers nothing. "
            "`removed`: the route was deleted, or has delivered all that it had taken."
        ),
    ]
    member: MemberField = None

    @classmethod
    def of(cls, message: MessageRoute) -> Self:
        """Return a route that takes a message."""
        route = None if message.route is None else message.route.name.route
        return cls(
            route=route,
            number=message.number,
            state=message.state,
            member=_member_out(message.member),
        )


class MessageRoutes(Mapped):
    """Routes that take a message, in the order of their numbers."""

    id: str
    published_at: Time
    routes: list[MessageRouteOut]

    @classmethod
    def of(cls, message_id: str, arrival_ms: int, routes: Iterable[MessageRoute]) -> Self:
        """Return the routes that take a message."""
        items = [MessageRouteOut.of(route) for route in routes]
        return cls(id=message_id, published_at=rfc3339(arrival_ms), routes=items)


class MatchTest(Config):
    """A match, and a message that is not published."""

    match: MatchField = None
    message: ExaminedMessage


class MatchTestResult(Mapped):
    """Result of a match for a message, and the conditions that the message does not meet."""

    matches: bool
    failed: list[FailedConditionOut]
    cost: Cost
