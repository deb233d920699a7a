"""One example for each operation of the OpenAPI document, declared beside its route.

A test runs them in this order, so that what an example needs stands above it.
"""

from api.native.examples import Example
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
    staged_writes,
    streams,
    timeseries,
    webhook_deliveries,
    webhooks,
)
from api.sse import endpoint as events

EXAMPLES: dict[str, Example] = {
    **queues.EXAMPLES,
    **messages.EXAMPLES,
    **queue_contents.EXAMPLES,
    **moves.EXAMPLES,
    **webhooks.EXAMPLES,
    **webhook_deliveries.EXAMPLES,
    **streams.EXAMPLES,
    **records.EXAMPLES,
    **columnar_records.EXAMPLES,
    **events.EXAMPLES,
    **groups.EXAMPLES,
    **group_records.EXAMPLES,
    **timeseries.EXAMPLES,
    **staged_writes.EXAMPLES,
    **archives.EXAMPLES,
    **arrow_records.EXAMPLES,
    **shards.EXAMPLES,
    **replays.EXAMPLES,
    **jobs.EXAMPLES,
    **namespaces.EXAMPLES,
    **keys.EXAMPLES,
    **identity.EXAMPLES,
    **audit.EXAMPLES,
    **processes.EXAMPLES,
    **sockets.EXAMPLES,
    **health.EXAMPLES,
}
