"""Filters: try a match, and translate conditions of other systems."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import Field

from api.native.audited_route import AuditedRoute
from api.native.examples import Example, Repeat
from api.rest.definition_router import JSON_ONLY
from api.rest.field_map import Mapped
from api.rest.schema_base import Config
from api.rest.schemas.route_match import MatchTest, MatchTestResult, failed_out
from storage.domain.errors import FieldFault, MatchInvalid
from storage.domain.filters.matches import CompiledMatch, parse_matches
from storage.domain.filters.translation import TranslationRefused
from storage.domain.filters.translators.engine import translate
from storage.domain.names import TopicName

router = APIRouter(prefix="/v1/filters", tags=["filters"], route_class=AuditedRoute)


class TranslateRequest(Config):
    """A condition of another system."""

    system: Literal["jms", "pubsub", "rabbitmq", "service_bus"]
    condition: Annotated[
        Any,
        Field(
            description="The text of the condition. For `rabbitmq` a binding: `exchange_type`, `routing_key` and `arguments`. For "
            "`service_bus` also a correlation filter, as an object."
        ),
    ]


class TranslatedMatch(Mapped):
    """A match that takes the same messages, and what differs."""

    match: dict[str, Any]
    notes: Annotated[list[str], Field(description="Differences from the system, if any.")]


@router.post("/test", dependencies=[JSON_ONLY])
async def test_match(request: MatchTest) -> MatchTestResult:
    """Evaluate a match on a message, and explain which conditions fail. Nothing is stored."""
    match = CompiledMatch(parse_matches(request.match))
    failed = match.explain(request.message.document(TopicName("test")))
    return MatchTestResult(matches=not failed, failed=failed_out(failed), cost=match.cost)


@router.post("/translate", dependencies=[JSON_ONLY])
async def translate_condition(request: TranslateRequest) -> TranslatedMatch:
    """Translate a condition of Pub/Sub, Service Bus, JMS or RabbitMQ into a match."""
    try:
        translation = translate(request.system, request.condition)
    except TranslationRefused as refusal:
        raise MatchInvalid(None, FieldFault("/condition", refusal.reason)) from None
    return TranslatedMatch(match=translation.match, notes=list(translation.notes))


# Examples of the OpenAPI document

EXAMPLES = {
    "test_match": Example(
        "/v1/filters/test",
        {
            "match": {
                "subject": "order.*",
                "filter": {"body": {"total": [{"numeric": [">", 100]}]}},
            },
            "message": {"subject": "order.created", "body": {"total": 50}},
        },
        answer={
            "matches": False,
            "failed": [
                {
                    "match": 0,
                    "path": "body.total",
                    "expected": [{"numeric": [">", 100]}],
                    "actual": [50],
                }
            ],
            "cost": "indexed",
        },
        repeat=Repeat.SAFE,
    ),
    "translate_condition": Example(
        "/v1/filters/translate",
        {"system": "pubsub", "condition": 'attributes.tenant = "t7"'},
        answer={"match": {"filter": {"headers": {"tenant": ["t7"]}}}, "notes": []},
        repeat=Repeat.SAFE,
    ),
}
