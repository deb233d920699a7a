"""Composition of all protocols over one open storage.

uvicorn --factory api.app:create_app

socket  ─▶ Gateway ─▶ push
request ─▶ Gateway: request id, authentication, count
             ├─ a hot route ─▶ its handler
             ├─ /, or the path of an Amazon queue URL ─▶ aws
             └─ anything else ─▶ FastAPI: configuration, health, metrics, openapi.json
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI

from api.app_routes import control_routers, fast_routes
from api.auth.audit import Auditing
from api.auth.authenticator import Authenticator, OpenMode, ProxyTrustMode
from api.auth.credentials import KeyAuthenticator
from api.auth.endpoint_services import EndpointServices
from api.auth.jwt import JwtIssuers
from api.auth.revalidation import SessionRevalidator
from api.aws.kinesis.service import KINESIS
from api.aws.kinesis.state.process_state import KinesisProcessState
from api.aws.protocol.endpoint import AwsEndpoint
from api.aws.protocol.target_protocol import ServiceRouter, TargetEndpoint
from api.aws.sqs.aws_limits_mode import AwsLimits
from api.aws.sqs.service import SQS
from api.aws.sts.service import STS
from api.config.settings import Settings, read_settings
from api.http.request import AppContext
from api.http.responses import AccessLog
from api.http.routing import Dispatcher
from api.native.record_formats import FORMATS
from api.observability.background_metrics import count_primary_change
from api.observability.logging import configure_logs
from api.observability.metric_buffers import (
    MetricBuffers,
    ProtocolMetrics,
    RateLimitBuffer,
    StoreMetricsBuffer,
)
from api.observability.metric_definitions import EVENT_LOOP_LAG_SECONDS
from api.observability.store_metrics import StateMetrics
from api.observability.tracing import Tracing
from api.observability.tracing_setup import close_tracing, open_tracing
from api.rest.exception_handlers import install_handlers
from api.rest.path_suggestions import PathSuggestions, operations_of
from api.rest.routes import health
from api.server import gc_tuning
from api.server.gateway import Gateway
from api.websocket.endpoint import WebSocketEndpoint
from api.websocket.presence import SocketsHere
from api.websocket.publisher import Publisher, PublishMetrics
from api.websocket.reply_waiter import ReplyWaiter
from api.websocket.session_registry import Sessions
from api.websocket.subscriptions.factory import SubscriptionFactory
from api.websocket.subscriptions.queue import QueueSubscriptionServices
from consumers.feeds.feed import Feeds
from consumers.mirrors.promotion import MirrorPromoter
from consumers.webhooks.manual_delivery import Requested
from storage.bootstrap import Storage, open_storage
from storage.concurrency.periodic import pause_seconds
from storage.domain.clock import SystemClock
from storage.domain.limits import Limits
from storage.domain.presence import ProcessRole
from storage.operations.presence import registered

LAG_PROBE_SECONDS = 1.0
_LIMITS = Limits()


def create_app(
    settings: Settings | None = None,
    storage: Storage | None = None,
    process_limits: Limits = _LIMITS,
) -> Gateway:
    """Create the service as one ASGI application.

    `storage`: an open one to use; otherwise the lifespan opens its own.
    """
    settings = settings or read_settings()
    counts = MetricBuffers()
    dispatcher = Dispatcher(fast_routes(), counts, settings.durability)

    def opened() -> Storage:
        storage: Storage = control.state["storage"]  # an attribute would cost five times that
        return storage

    tracing = open_tracing(settings)
    access = AccessLog(settings.access_rate) if settings.access_rate else None
    authenticator = _authenticator(settings, opened)
    revalidator, auditing = SessionRevalidator(authenticator), Auditing(opened)
    services = EndpointServices(
        authenticator=authenticator,
        revalidator=revalidator,
        auditing=auditing,
        counts=counts,
        storage=opened,
        durability=settings.durability,
        region=settings.aws_region,
        secure=settings.ssl_certfile is not None,
        public_url=settings.public_url,
        tracing=tracing,
        access=access,
    )
    control = _control_plane(services, settings, storage, dispatcher, process_limits)
    control.state.auditing = auditing
    alike = AwsLimits(settings.limits == "aws")
    sqs = AwsEndpoint(SQS, services, protocol="sqs", noun="queue", process_state=alike)
    process_state = KinesisProcessState(settings.limits)
    kinesis = TargetEndpoint(
        KINESIS, services, protocol="kinesis", noun="stream", process_state=process_state
    )
    sts = AwsEndpoint(STS, services, protocol="sts")
    aws = ServiceRouter(sqs, targets=[kinesis], forms=[sts])
    push = WebSocketEndpoint(
        authenticator=authenticator,
        revalidator=revalidator,
        auditing=auditing,
        sessions=lambda: control.state.sessions,
        subscription_factory=lambda: control.state.subscription_factory,
        connection_slots=lambda: control.state.storage.connection_slots,
    )
    return Gateway(
        services,
        control,
        dispatcher,
        aws=aws,
        push=push,
        cors_origins=settings.cors_origins_list(),
    )


def _authenticator(settings: Settings, opened: Callable[[], Storage]) -> Authenticator:
    if settings.wants_credentials:
        return KeyAuthenticator(opened, JwtIssuers(settings.issuers()))
    return ProxyTrustMode() if settings.insecure else OpenMode(settings.cors_origins_list())


def _control_plane(
    services: EndpointServices,
    settings: Settings,
    storage: Storage | None,
    dispatcher: Dispatcher,
    process_limits: Limits,
) -> FastAPI:
    app = FastAPI(
        title="Millstream",
        version=version("millstream"),
        lifespan=_lifespan(services, settings, storage, process_limits),
        docs_url=None,  # their pages load scripts from other sites
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        separate_input_output_schemas=False,
    )
    app.state.durability = settings.durability
    app.state.settings = settings
    app.state.guarded = settings.wants_credentials
    app.state.hot_methods = dispatcher.methods
    app.state.stream_metrics = dispatcher.metrics_of("streams")
    if storage is not None:
        _serve_from(app, storage, settings)
    routers = control_routers(app, dispatcher, services.counts)
    for router in routers:
        app.include_router(router)
    app.state.cold_routes = [route for router in routers for route in router.routes]
    app.state.path_suggestions = PathSuggestions(
        operations_of(dispatcher.routes, app.state.cold_routes)
    )
    install_handlers(app)
    return app


def _serve_from(app: FastAPI, storage: Storage, settings: Settings) -> None:
    app.state.storage = storage
    app.state.feeds = Feeds(storage.record_reader, FORMATS)
    app.state.context = AppContext(storage, app.state.feeds)
    app.state.requested = Requested(storage, settings.webhook_allow_list())
    app.state.promoter = MirrorPromoter(storage, settings.webhook_allow_list())
    app.state.readiness = health.Readiness(storage.health)
    app.state.state_metrics = StateMetrics(storage, app.version)


def _lifespan(
    services: EndpointServices, settings: Settings, given: Storage | None, process_limits: Limits
) -> Any:
    counts, tracing = services.counts, services.tracing
    metrics = PublishMetrics(
        ProtocolMetrics(counts, "queue", "ws", settings.durability, "push"),
        ProtocolMetrics(counts, "stream", "ws", settings.durability, "push"),
        ProtocolMetrics(counts, "topic", "ws", settings.durability, "push"),
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        configure_logs(settings.log_level)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(close_tracing, tracing)
            if given is None:
                opened = await stack.enter_async_context(
                    open_storage(settings.storage(), on_primary_change=count_primary_change)
                )
                _serve_from(app, opened, settings)
            await stack.enter_async_context(
                _websocket_services(app, metrics, process_limits, tracing)
            )
            storage: Storage = app.state.storage
            for refusing in (storage.quotas, storage.connection_slots, storage.memory_guard):
                counts.add(RateLimitBuffer(refusing.refused))
            counts.add(StoreMetricsBuffer(storage.store_metrics))
            await stack.enter_async_context(_background_task(_measure_lag(counts)))
            await stack.enter_async_context(_background_task(services.revalidator.run()))
            here = SocketsHere(app.state.sessions, SystemClock())
            await stack.enter_async_context(
                registered(
                    storage.presence, ProcessRole.API, here, process_limits.presence_heartbeat_ms
                )
            )
            stack.callback(counts.flush)
            gc_tuning.freeze_startup_heap()
            yield

    return lifespan


@asynccontextmanager
async def _websocket_services(
    app: FastAPI, metrics: PublishMetrics, process_limits: Limits, tracing: Tracing | None
) -> AsyncGenerator[None]:
    storage: Storage = app.state.storage
    feeds: Feeds = app.state.feeds
    sessions = Sessions(process_limits, asyncio.get_running_loop().time)
    app.state.sessions = sessions
    app.state.subscription_factory = SubscriptionFactory(
        storage,
        feeds,
        metrics,
        Publisher(
            queues=storage.queues,
            streams=storage.streams,
            topics=storage.topics,
            requests=storage.requests,
            replies=ReplyWaiter(storage.requests),
            access=storage.authorizer,
            quotas=storage.quotas,
            metrics=metrics,
            catalog=storage.catalog,
            tracing=tracing,
        ),
        QueueSubscriptionServices(
            storage.queues,
            storage.requests,
            storage.catalog,
            SystemClock(),
            metrics.queues,
            tracing,
        ),
    )
    try:
        yield
    finally:
        await sessions.close()
        await feeds.close()


@asynccontextmanager
async def _background_task(work: Coroutine[None, None, None]) -> AsyncGenerator[None]:
    """Run a coroutine in the background while the block runs."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _measure_lag(counts: MetricBuffers) -> None:
    """Measure the event loop's lag periodically, and flush pending counts."""
    while True:
        pause_s = pause_seconds(LAG_PROBE_SECONDS, asyncio.get_running_loop().time())
        due = time.perf_counter() + pause_s
        await asyncio.sleep(pause_s)
        EVENT_LOOP_LAG_SECONDS.observe(max(0.0, time.perf_counter() - due))
        counts.flush()
