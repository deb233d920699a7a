"""Published messages: content, routes, results of matches, and back-tests."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response

from api.native.audited_route import AuditedRoute
from api.native.dependencies import PrincipalDep, StorageDep, TopicPath, may
from api.native.examples import AT, LATER, STREAM_ID, Example, Repeat
from api.rest.definition_router import JSON_ONLY
from api.rest.schemas.back_test import (
    BackTestConfig,
    BackTestJobConfig,
    BackTestJobOut,
    BackTestOut,
)
from api.rest.schemas.route_match import (
    ExplainRequest,
    Explanation,
    MessageRoutes,
    RouteExplanationOut,
)
from api.rest.schemas.topic import TopicMessageOut
from storage.bootstrap import Storage
from storage.domain import limits
from storage.domain.access.permissions import Action
from storage.domain.errors import ValidationFailed
from storage.domain.filters.documents import Document, document_of, meta_of
from storage.domain.names import TopicName
from storage.domain.topics.message_id import TopicMessageId
from storage.domain.topics.report import RouteExplanation
from storage.operations.job_waits import wait_reasons
from storage.topics.back_tests import BackTestJob

router = APIRouter(prefix="/v1/topics", tags=["topics"], route_class=AuditedRoute)

READ = Depends(may(Action.TOPIC_READ))
MessagePath = Annotated[
    str, Path(description="Id of the message, as the response to its publication has it.")
]


@router.get("/{topic}/messages/{message}", dependencies=[READ])
async def get_published_message(
    topic: TopicPath, message: MessagePath, storage: StorageDep
) -> TopicMessageOut:
    """Show a message that was published to a topic."""
    message_id = TopicMessageId.parse(message)
    return TopicMessageOut.of(message_id, await storage.topic_reports.message(topic, message_id))


@router.get("/{topic}/messages/{message}/routes", dependencies=[READ])
async def get_message_routes(
    topic: TopicPath, message: MessagePath, storage: StorageDep
) -> MessageRoutes:
    """Show the routes that take a published message, and whether its targets have it.

    Which routes take a message is decided when it is accepted, and does not change.
    """
    message_id = TopicMessageId.parse(message)
    reports = storage.topic_reports
    record = await reports.message(topic, message_id)
    routes = await reports.routes_of_message(topic, message_id)
    return MessageRoutes.of(message, record.arrival_ms, routes)


@router.post("/{topic}/explain", dependencies=[READ, JSON_ONLY])
async def explain_message(
    topic: TopicPath, request: ExplainRequest, storage: StorageDep
) -> Explanation:
    """Explain for each route whether it takes a message, and if not, which condition fails.

    The message is not published. It is given, or one that was published is named by its `id`; the routes are those of now.
    """
    document = await _examined(storage, topic, request)
    explanations = storage.topic_reports.explain(
        topic, document, request.route or "", request.id or ""
    )
    return await _explanation(document.subject, explanations)


async def _examined(storage: Storage, topic: TopicName, request: ExplainRequest) -> Document:
    if (request.message is None) == (request.id is None):
        detail = "Specify exactly one of 'message' and 'id'"
        raise ValidationFailed.at("/message", detail, "exclusive")
    if request.message is not None:
        return request.message.document(topic)
    message_id = TopicMessageId.parse(request.id or "")
    record = await storage.topic_reports.message(topic, message_id)
    return document_of(record.record, meta_of(topic.stream))


async def _explanation(subject: str, explanations: AsyncIterator[RouteExplanation]) -> Explanation:
    """Return the explanations, with those of routes that take the message first."""
    matching: list[RouteExplanationOut] = []
    others: list[RouteExplanationOut] = []
    routes = 0
    async for explanation in explanations:
        routes += 1
        shown = matching if explanation.matches else others
        if len(shown) < limits.EXPLAINED_ROUTES_MAX:
            shown.append(RouteExplanationOut.of(explanation))
    items = (matching + others)[: limits.EXPLAINED_ROUTES_MAX]
    return Explanation(
        subject=subject,
        matches=[item.route for item in matching],
        routes=items,
        complete=len(items) == routes,
    )


@router.post("/{topic}/backtests", dependencies=[READ, JSON_ONLY])
async def backtest_match(
    topic: TopicPath, request: BackTestConfig, storage: StorageDep
) -> BackTestOut:
    """Evaluate a match on the messages that a topic has, beside that of a route.

    Nothing is delivered. The answer is sent when all messages are evaluated, up to 200,000; a job evaluates any number
    (`start_backtest_job`).
    """
    result = await storage.back_tests.run(topic, request.to_domain())
    return BackTestOut.of(result, has_other=request.compare_with is not None)


@router.post(
    "/{topic}/backtests/jobs",
    dependencies=[Depends(may(Action.JOB_MANAGE)), JSON_ONLY],
    status_code=202,
)
async def start_backtest_job(
    topic: TopicPath,
    request: BackTestJobConfig,
    storage: StorageDep,
    principal: PrincipalDep,
    response: Response,
) -> BackTestJobOut:
    """Start a job that evaluates a match on all messages that a topic has, also archived ones.

    They are those that were accepted before the call. A topic has one such job at a time: the same back-test again returns the open
    job, another one is refused. It also needs the permission `topic:read`. Jobs are cancelled and retried with `/v1/jobs`.
    """
    storage.authorizer.authorise(principal, Action.TOPIC_READ, f"{topic.namespace}/{topic.name}")
    submitted = await storage.back_tests.submit(topic, request.to_domain())
    response.headers["location"] = f"/v1/topics/{topic.name}/backtests/jobs/{submitted.job.job_id}"
    return await _job_answer(storage, submitted)


@router.get("/{topic}/backtests/jobs/{job}", dependencies=[READ])
async def get_backtest_job(
    topic: TopicPath,
    job: Annotated[str, Path(description="As returned when the job was started.")],
    storage: StorageDep,
) -> BackTestJobOut:
    """Show a back-test that runs as a job, and its result so far."""
    return await _job_answer(storage, await storage.back_tests.get(topic, job))


async def _job_answer(storage: Storage, back_test: BackTestJob) -> BackTestJobOut:
    waits = await wait_reasons(storage.presence, back_test.job)
    return BackTestJobOut.of(back_test, waits.get(back_test.job.job_id))


# Examples of the OpenAPI document

PUBLISHED_ID = f"{STREAM_ID}-0-0"
BACK_TEST_ID = "9f8e7d6c5b4a39281706f5e4d3c2b1a0"
_BACK_TEST = {
    "match": {"filter": {"body": {"total": [{"numeric": [">", 100]}]}}},
    "compare_with": "billing",
}
_BACK_TEST_JOB = {
    "id": BACK_TEST_ID,
    "topic": "orders",
    "state": "queued",
    "requested_state": "none",
    "waiting_for": "worker",
    "attempt": 0,
    "failure": "",
    "created_at": AT,
    "started_at": None,
    "ended_at": None,
    **_BACK_TEST,
    "start_time": None,
    "end_time": None,
    "messages": 3_500_000,
    "result": {
        "evaluated": 0,
        "matched": 0,
        "gained": 0,
        "lost": 0,
        "failed_by_path": {},
        "samples": {"matched": [], "gained": [], "lost": []},
        "complete": False,
    },
}

EXAMPLES = {
    "get_published_message": Example(
        f"/v1/topics/orders/messages/{PUBLISHED_ID}",
        answer={
            "id": PUBLISHED_ID,
            "shard": 0,
            "offset": 0,
            "subject": "order.created",
            "key": "customer-7",
            "headers": {},
            "headers_base64": {},
            "content_type": "application/json",
            "dedup_id": "",
            "delay_seconds": None,
            "ttl_seconds": 0,
            "priority": 0,
            "body": {"id": 1, "total": 250},
            "body_base64": None,
            "published_at": AT,
        },
    ),
    "get_message_routes": Example(
        f"/v1/topics/orders/messages/{PUBLISHED_ID}/routes",
        answer={
            "id": PUBLISHED_ID,
            "published_at": AT,
            "routes": [{"route": "billing", "number": 1, "state": "finished"}],
        },
    ),
    "backtest_match": Example(
        "/v1/topics/orders/backtests",
        _BACK_TEST,
        answer={
            "evaluated": 1,
            "matched": 1,
            "gained": 0,
            "lost": 0,
            "failed_by_path": {},
            "samples": {"matched": [PUBLISHED_ID], "gained": [], "lost": []},
            "complete": True,
        },
        repeat=Repeat.SAFE,
    ),
    "start_backtest_job": Example(
        "/v1/topics/orders/backtests/jobs",
        _BACK_TEST,
        status=202,
        answer=_BACK_TEST_JOB,
        repeat=Repeat.SAFE,
    ),
    "get_backtest_job": Example(
        f"/v1/topics/orders/backtests/jobs/{BACK_TEST_ID}",
        answer={
            **_BACK_TEST_JOB,
            "state": "done",
            "waiting_for": None,
            "attempt": 1,
            "started_at": AT,
            "ended_at": LATER,
            "result": {
                "evaluated": 3_500_000,
                "matched": 41_200,
                "gained": 1_200,
                "lost": 0,
                "failed_by_path": {"body.total": 3_458_800},
                "samples": {"matched": [PUBLISHED_ID], "gained": [PUBLISHED_ID], "lost": []},
                "complete": True,
            },
        },
    ),
    "explain_message": Example(
        "/v1/topics/orders/explain",
        {"message": {"subject": "refund.created", "body": {"id": 1}}},
        answer={
            "subject": "refund.created",
            "matches": [],
            "routes": [
                {
                    "route": "billing",
                    "matches": False,
                    "failed": [
                        {
                            "match": 0,
                            "path": "subject",
                            "expected": ["order.*"],
                            "actual": ["refund.created"],
                        }
                    ],
                }
            ],
            "complete": True,
        },
        repeat=Repeat.SAFE,
    ),
}
