"""Modules of REST routes, listed once for routers, fast routes and examples.

A new module is added here, below those whose examples its own examples need.
"""

from types import ModuleType

from api.rest.routes import (
    archives,
    arrow_records,
    audit,
    columnar_records,
    group_records,
    groups,
    health,
    identity,
    jobs,
    keys,
    messages,
    moves,
    namespaces,
    processes,
    queue_contents,
    queues,
    records,
    replays,
    shards,
    sockets,
    sources,
    staged_writes,
    streams,
    timeseries,
    webhook_deliveries,
    webhooks,
)

ROUTE_MODULES: tuple[ModuleType, ...] = (
    queues,
    messages,
    queue_contents,
    moves,
    webhooks,
    webhook_deliveries,
    sources,
    streams,
    records,
    columnar_records,
    groups,
    group_records,
    timeseries,
    staged_writes,
    archives,
    arrow_records,
    shards,
    replays,
    jobs,
    namespaces,
    keys,
    identity,
    audit,
    processes,
    sockets,
    health,
)
