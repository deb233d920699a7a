"""Assembly of the topics."""

from contextlib import AsyncExitStack
from typing import NamedTuple

from storage.catalog.catalog import Catalog
from storage.concurrency.leader_election import LeaderLeases
from storage.domain.clock import Clock
from storage.hot_store.wakeups import Wakeups
from storage.jobs import Jobs
from storage.log.provisioner import LogProvisioner
from storage.log.queue_executor import QueueExecutor
from storage.postgres.database import Database
from storage.postgres.repositories.route_endpoints import RouteEndpointRows
from storage.postgres.repositories.routes import RouteRows
from storage.postgres.repositories.topic_positions import TopicPositionRows
from storage.queues.engine import Queues
from storage.redis.queues.transfer import RedisTransferStore
from storage.redis.streams.idempotence import RedisWatermarkStore
from storage.redis.streams.logs import RedisLogStore
from storage.streams.engine import Streams
from storage.streams.read import RecordReader
from storage.topics.back_tests import BackTests
from storage.topics.endpoints import RouteEndpoints
from storage.topics.engine import Topics
from storage.topics.fences import RouteFences
from storage.topics.queue_intake import QueueIntake
from storage.topics.reports import TopicReports
from storage.topics.route_table import RouteTables
from storage.topics.routes import TopicRoutes
from storage.topics.routing import TopicRouting
from storage.webhooks.engine import Webhooks


class TopicEngines(NamedTuple):
    """Topics and their routes, and the intake of queues that have routes."""

    topics: Topics
    routes: TopicRoutes
    endpoints: RouteEndpoints
    routing: TopicRouting
    reports: TopicReports
    queue_intake: QueueIntake
    back_tests: BackTests


def open_topics(
    stack: AsyncExitStack,
    *,
    logs: RedisLogStore,
    watermarks: RedisWatermarkStore,
    transfers: RedisTransferStore,
    database: Database,
    catalog: Catalog,
    provisioner: LogProvisioner,
    executor: QueueExecutor,
    wakeups: Wakeups,
    queues: Queues,
    streams: Streams,
    reader: RecordReader,
    webhooks: Webhooks,
    jobs: Jobs,
    leases: LeaderLeases,
    clock: Clock,
) -> TopicEngines:
    """Open the topics; their route tables are closed with the stack."""
    rows, positions = RouteRows(database), TopicPositionRows(database)
    fences = RouteFences(hot=logs, provisioner=provisioner, catalog=catalog, rows=rows)
    tables = RouteTables(rows=rows, fences=fences)
    stack.push_async_callback(tables.close)
    endpoints = RouteEndpoints(
        catalog=catalog,
        queues=queues,
        webhooks=webhooks,
        rows=RouteEndpointRows(database),
        clock=clock,
    )
    topics = Topics(catalog=catalog, streams=streams, tables=tables, rows=rows)
    routes = TopicRoutes(
        topics=topics,
        catalog=catalog,
        rows=rows,
        fences=fences,
        endpoints=endpoints,
        reader=reader,
        clock=clock,
    )
    return TopicEngines(
        topics=topics,
        routes=routes,
        endpoints=endpoints,
        routing=TopicRouting(catalog=catalog, routes=rows, positions=positions, leases=leases),
        reports=TopicReports(
            topics=topics,
            routes=routes,
            tables=tables,
            positions=positions,
            reader=reader,
            clock=clock,
        ),
        queue_intake=QueueIntake(
            hot=transfers,
            executor=executor,
            topics=topics,
            tables=tables,
            rows=rows,
            catalog=catalog,
            streams=streams,
            watermarks=watermarks,
            provisioner=provisioner,
            wakeups=wakeups,
            clock=clock,
        ),
        back_tests=BackTests(catalog=catalog, routes=routes, reader=reader, jobs=jobs),
    )
