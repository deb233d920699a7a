"""Match schemas: explanations for a message, and back-tests on all of a topic."""

from collections.abc import Iterable
from typing import Annotated, Any, Self

from pydantic import Field

from api.native.fields import rfc3339
from api.rest.field_map import Mapped, MappedConfig, domain_value
from api.rest.schema_base import Config, Moment, Time
from api.rest.topic_fields import ExaminedMessage, MatchField, RouteMatchField
from storage.domain import limits
from storage.domain.filters.matches import Cost, FailedCondition
from storage.domain.topics.back_test import BackTest, BackTestResult
from storage.domain.topics.report import MessageRoute, MessageRouteState, RouteExplanation

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

    @classmethod
    def of(cls, explanation: RouteExplanation) -> Self:
        """Return the result of a route for a message."""
        return cls(
            route=explanation.route.name.route,
            matches=explanation.matches,
            failed=failed_out(explanation.failed),
        )


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

    @classmethod
    def of(cls, message: MessageRoute) -> Self:
        """Return a route that takes a message."""
        route = None if message.route is None else message.route.name.route
        return cls(route=route, number=message.number, state=message.state)


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


# Back-tests


class BackTestConfig(MappedConfig):
    """A match, to be evaluated on the messages that a topic has."""

    domain = BackTest

    match: RouteMatchField = None
    compare_with: Annotated[
        str | None, Field(description="Name of a route, whose present match is evaluated too.")
    ] = None
    start_time: Annotated[
        Moment | None,
        Field(description="Messages accepted at or after this time; null: from the earliest on."),
    ] = None
    end_time: Annotated[
        Moment | None, Field(description="Messages accepted before this time; null: until now.")
    ] = None
    messages_max: Annotated[
        int,
        Field(description="Messages to evaluate at most. If there are more, `complete` is false."),
    ] = limits.BACK_TEST_MESSAGES_MAX
    samples_max: Annotated[int, Field(description="Ids of each kind to return at most.")] = (
        limits.BACK_TEST_SAMPLES_DEFAULT
    )

    def to_domain(self) -> BackTest:
        return domain_value(BackTest, self, match=self.match)


class BackTestSamples(Mapped):
    """Ids of the first messages of each kind."""

    matched: list[str]
    gained: list[str]
    lost: list[str]


class BackTestOut(Mapped):
    """Messages that a match takes, of those that were evaluated."""

    evaluated: int
    matched: int
    gained: Annotated[
        int | None, Field(description="Taken by the match, and not by the route to compare with.")
    ]
    lost: Annotated[
        int | None, Field(description="Taken by the route to compare with, and not by the match.")
    ]
    failed_by_path: Annotated[
        dict[str, int],
        Field(description="Messages that fail a condition, by its path; most first."),
    ]
    samples: BackTestSamples
    complete: Annotated[
        bool, Field(description="False if the range has more messages than were evaluated.")
    ]

    @classmethod
    def of(cls, result: BackTestResult, *, has_other: bool) -> Self:
        """Return a result; `has_other` if a route was compared."""
        failed = sorted(result.failed_by_path.items(), key=lambda item: (-item[1], item[0]))
        samples = BackTestSamples(
            matched=[*map(str, result.matched_ids)],
            gained=[*map(str, result.gained_ids)],
            lost=[*map(str, result.lost_ids)],
        )
        return cls.from_domain(
            result,
            gained=result.gained if has_other else None,
            lost=result.lost if has_other else None,
            failed_by_path=dict(failed),
            samples=samples,
        )


class MatchTest(Config):
    """A match, and a message that is not published."""

    match: MatchField = None
    message: ExaminedMessage


class MatchTestResult(Mapped):
    """Result of a match for a message, and the conditions that the message does not meet."""

    matches: bool
    failed: list[FailedConditionOut]
    cost: Cost
