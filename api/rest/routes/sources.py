"""Sources: configuration, URL, test event, counters, and the reception of events."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Body, Depends, Request, Response
from fastapi.routing import APIRoute

from api.errors import HttpError
from api.native.dependencies import NamePart, SourcePath, StorageDep, may
from api.native.examples import AT, CREATED, LATER, Example
from api.native.fields import rfc3339, to_ms
from api.observability.metric_definitions import SOURCE_REQUESTS
from api.rest.definition_router import JSON_ONLY, definition_router
from api.rest.noun import Noun, Schemas, Verbs, verbs_of
from api.rest.schemas.source import (
    ReceivedEvent,
    RotateTokenIn,
    SourceConfig,
    SourceFailureOut,
    SourceFailures,
    SourceOut,
    SourcePage,
    SourceStats,
    SourceStored,
    SourceUrl,
)
from storage.bootstrap import Storage
from storage.domain.access.permissions import Action, Principal
from storage.domain.definitions import Put
from storage.domain.errors import MillstreamError
from storage.domain.sources.source import InboundSource, SourceSpec

_VERBS = frozenset({"test", "rotate-url"})
MANAGE = Depends(may(Action.SOURCE_MANAGE))
Rotation = Annotated[RotateTokenIn, Body(default_factory=RotateTokenIn)]
SEE = Depends(may(Action.SOURCE_LIST))


def _authorise(storage: Storage, principal: Principal, _: object, spec: SourceSpec) -> None:
    """Require permission to write to the target. Raises Forbidden."""
    action = Action.STREAM_PUT if spec.into.stream is not None else Action.QUEUE_SEND
    target = f"{principal.namespace}/{spec.into.stream or spec.into.queue}"
    storage.authorizer.authorise(principal, action, target)


async def _path(_: Storage, put: Put[InboundSource], dry_run: bool) -> Mapping[str, Any]:
    return {"path": None if dry_run else path_of(put.definition)}


def path_of(source: InboundSource) -> str:
    """Return the path that receives the events of a source."""
    return f"/v1/sources/{source.name.name}/{source.tokens[0].value}"


def is_public(method: str, path: str) -> bool:
    """Return whether a request is an event of a source, which its URL and signature authorise."""
    match method, path.split("/"):
        case "POST", ["", "v1", "sources", _, token]:
            return token not in _VERBS
        case _:
            return False


def _verbs(storage: Storage, _: Principal) -> Verbs:
    return verbs_of(storage.sources, list=storage.sources.list_sources)


SOURCES = Noun(
    name="source",
    path=SourcePath,
    schemas=Schemas(SourceOut, SourceConfig, SourceStored, page=SourcePage),
    body_required=True,
    verbs=_verbs,
    authorise=_authorise,
    put_fields=_path,
    is_etag_complete=True,
    descriptions={
        "put": """Create a source that receives webhooks of another service, or replace its configuration.

            The response contains the path to be given to the provider, behind the address of this service. A POST there needs no key:
            the path and the provider's signature authorise it. The response is 2xx once the event is on disk, and 401 for a bad signature.
            The path stays until it is rotated. Whether the source is paused does not
            change. With `If-None-Match: *`, an existing source is not changed: the response is 412, with the source (`current`) and the
            requested fields that differ from it (`changes`).
            """,
        "get": "Show the configuration of a source, without secrets.",
        "pause": "Pause a source. Its events are refused with 503, and providers send them again later.",
        "resume": "Resume a paused source.",
        "delete": "Delete a source, and the events that have not reached its target. The target is kept.",
        "list": "List sources by name.",
    },
)
router = definition_router(SOURCES)


@router.get("/{source}/url", dependencies=[MANAGE])
async def get_source_url(source: SourcePath, storage: StorageDep) -> SourceUrl:
    """Show the path that receives the events of a source."""
    return SourceUrl(path=path_of(await storage.sources.get_with_secrets(source)))


@router.get("/{source}/stats", dependencies=[SEE])
async def get_source_stats(source: SourcePath, storage: StorageDep) -> SourceStats:
    """Show the numbers of accepted, repeated and rejected requests, and what waits."""
    definition = await storage.sources.get(source)
    counts = await storage.source_transfer.counts(definition)
    return SourceStats.from_domain(counts, failure=storage.source_transfer.failure_of(definition))


@router.get("/{source}/failures", dependencies=[SEE])
async def list_source_failures(source: SourcePath, storage: StorageDep) -> SourceFailures:
    """List the last 100 requests that were rejected, the newest first, with reasons."""
    failures = await storage.source_transfer.failures(await storage.sources.get(source))
    return SourceFailures(items=[SourceFailureOut.from_domain(failure) for failure in failures])


@router.post("/{source}/test", dependencies=[MANAGE])
async def test_source(source: SourcePath, storage: StorageDep) -> ReceivedEvent:
    """Send a test event, signed as the provider does, through the source to its target."""
    definition = await storage.sources.get_with_secrets(source)
    headers, body = storage.source_receiver.test_request(definition)
    reception = await storage.source_receiver.receive(definition, headers, body)
    return ReceivedEvent(id=reception.event_id, duplicate=reception.duplicate)


@router.post("/{source}/rotate-url", dependencies=[MANAGE, JSON_ONLY])
async def rotate_source_url(
    source: SourcePath,
    storage: StorageDep,
    rotation: Rotation,
) -> SourceUrl:
    """Replace the path of a source, for example after it leaked.

    The previous path is valid for the overlap period, so that no event is refused meanwhile.
    """
    rotated = await storage.sources.rotate_token(source, to_ms(rotation.overlap_seconds))
    old_until = None if rotated.old_until_ms is None else rfc3339(rotated.old_until_ms)
    return SourceUrl(path=path_of(rotated.source), old_path_expires_at=old_until)


async def receive_event(
    source: NamePart, token: str, request: Request, storage: StorageDep
) -> Response:
    """Receive an event; its path and the provider's signature authorise it.

    The response is 2xx once the event is on disk, also for one that was accepted before. A bad signature, or one that is too old, is 401, and nothing
    is stored. Handshakes, such as Slack's `url_verification`, are answered as the provider requires.
    """
    definition = await storage.source_receiver.find(source, token)
    headers = {name.lower(): value for name, value in request.headers.items()}
    try:
        reception = await storage.source_receiver.receive(definition, headers, await request.body())
    except (MillstreamError, HttpError) as error:
        SOURCE_REQUESTS.labels(error.code.value).inc()
        raise
    SOURCE_REQUESTS.labels(reception.outcome).inc()
    if reception.handshake is not None:
        return Response(reception.handshake.body, media_type=reception.handshake.content_type)
    event = ReceivedEvent(id=reception.event_id, duplicate=reception.duplicate)
    return Response(event.model_dump_json(), media_type="application/json")


router.add_api_route(
    "/{source}/{token}",
    receive_event,
    methods=["POST"],
    include_in_schema=False,  # called by providers, not by clients
    route_class_override=APIRoute,  # accepts their headers, parameters and bodies, whatever they are
)


# Examples of the OpenAPI document

_SOURCE: dict[str, Any] = {
    "webhook": {
        "provider": "github",
        "secrets": ["(secret)"],
        "tolerance_seconds": 300,
        "headers": ["X-GitHub-Event"],
        "signature_header": None,
        "algorithm": "sha256",
        "encoding": "hex",
        "prefix": "",
        "timestamp_header": None,
        "id_header": None,
    },
    "into": {"queue": "orders", "stream": None, "key": None},
    "dedup_seconds": 259200,
    "name": "github",
    "paused": False,
    "version": 1,
    "created_at": AT,
    "changed_at": AT,
}
_PATH = "/v1/sources/github/9f2c41d07ab35e8869f2c41d07ab35e8869f2c41d07ab35e8869f2c41d07ab35"

EXAMPLES = {
    "put_source": Example(
        "/v1/sources/github",
        {
            "webhook": {
                "provider": "github",
                "secrets": ["It's a Secret to Everybody"],
                "headers": ["X-GitHub-Event"],
            },
            "into": {"queue": "orders"},
        },
        201,
        {**_SOURCE, **CREATED, "path": _PATH},
    ),
    "get_source": Example("/v1/sources/github", answer=_SOURCE),
    "list_sources": Example(
        "/v1/sources?prefix=git", answer={"items": [_SOURCE], "next_cursor": None}
    ),
    "get_source_url": Example(
        "/v1/sources/github/url", answer={"path": _PATH, "old_path_expires_at": None}
    ),
    "test_source": Example(
        "/v1/sources/github/test", answer={"id": "test-6f9619ff8b86d011", "duplicate": False}
    ),
    "get_source_stats": Example(
        "/v1/sources/github/stats",
        answer={
            "accepted": 1,
            "duplicates": 0,
            "rejected": 0,
            "handshakes": 0,
            "waiting": 0,
            "waiting_bytes": 0,
            "last_accepted_at": LATER,
            "last_rejected_at": None,
            "failure": "",
        },
    ),
    "list_source_failures": Example("/v1/sources/github/failures", answer={"items": []}),
    "rotate_source_url": Example(
        "/v1/sources/github/rotate-url",
        {"overlap_seconds": 86400},
        answer={"path": _PATH, "old_path_expires_at": LATER},
    ),
    "pause_source": Example(
        "/v1/sources/github/pause",
        answer={**_SOURCE, "paused": True, "version": 3, "changed_at": LATER},
    ),
    "resume_source": Example(
        "/v1/sources/github/pause", answer={**_SOURCE, "version": 4, "changed_at": LATER}
    ),
    "delete_source": Example("/v1/sources/github", status=204),
}
