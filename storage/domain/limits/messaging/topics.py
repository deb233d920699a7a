"""Limits of topics and their routes."""

from storage.domain.limits._shared import DAY_MS, KIB, MIB, MINUTE_MS, SECOND_MS

# Topics
TOPIC_RETENTION_MS_DEFAULT = 4 * DAY_MS  # as that of queues
EXPLAINED_ROUTES_MAX = 1_000  # of one answer
TOPIC_HOPS_MAX = 8  # topics that a message passes through routes
ROUTES_MAX = 10_000  # of a topic
WHERE_ROUTES_MAX = 200  # of a topic, with a match that is `where` alone: asked for each message
FAN_OUT_BYTES_MAX = 256 * MIB  # size of a message times the routes that take it
ROUTE_TABLES_CACHED_MAX = 1_000  # per process; a table of 10 000 routes has some 30 MB
STALE_ROUTES_RETRIES_MAX = 8  # changes of a topic's routes that one publish outlasts
LAGGING_ROUTES_MAX = 20  # of a namespace, that the dashboard looks at
ROUTE_ALERT_LAG_MS = MINUTE_MS  # from which on the dashboard names a route
ROUTE_QUEUE_RETENTION_MS = (
    14 * DAY_MS
)  # of messages for a URL, and the sum of its retry delays: time to repair a receiver, as dead letters have
ROUTE_LOG_CONCURRENCY_MAX = 8  # logs whose fence a change of routes sets concurrently

# Back-tests
BACK_TEST_MESSAGES_MAX = 200_000  # of one call that waits; a job has no limit
BACK_TEST_PIECE_MESSAGES = 50_000  # of a job, that are evaluated and counted together
BACK_TEST_SAMPLES_MAX = 100  # ids of each kind in the answer
BACK_TEST_SAMPLES_DEFAULT = 10
BACK_TESTS_CONCURRENT_MAX = 2  # in a process; others wait

# Transforms
TRANSFORM_PATHS_MAX = 100
TRANSFORM_PATH_CHARACTERS_MAX = 1_024
TRANSFORM_TEMPLATE_BYTES_MAX = 8 * KIB  # of the body's template; as much of the headers' together
TRANSFORM_DEPTH_MAX = 32  # objects and arrays within one another in a template
TRANSFORM_RESULT_BYTES_MAX = (
    10 * MIB  # body, headers and subject; a target accepts at most that, as RECORD_BYTES_MAX
)

# Routes of queues
QUEUE_ROUTE_BATCH_MESSAGES = 500
QUEUE_ROUTE_BATCH_BYTES = 4 * MIB

# Spreads
SPREAD_MEMBERS_MIN = 2  # one is the target itself
SPREAD_MEMBERS_MAX = 32  # each hashes the key of each message, and has a buffer in the router
SPREAD_WEIGHT_MAX = 1_000  # as the ratio of two members

# Routers
ROUTER_LEASES = 16  # shares of all topics; as many processes can route
ROUTER_RELOAD_MS = SECOND_MS
ROUTER_SAVE_MS = SECOND_MS
ROUTER_IDLE_MS = 3 * SECOND_MS  # without a message, before a topic's router ends
ROUTER_STARTS_MAX = 16  # routers of a process that read their positions and routes at once
ROUTER_RECHECKS_MAX = 4  # idle topics of a share that are read at once, in case of lost wake-ups
ROUTER_BATCH_RECORDS = 500
ROUTER_BATCH_BYTES = MIB
ROUTER_BLOCK_COPIES = 1_000  # that are sorted by target at once
ROUTER_ROUTE_SETS_CACHED_MAX = 1_000  # of a topic: routes that take a message together
ROUTER_OUTBOX_RECORDS = 10_000  # beyond either, the target gets a reader of its own
ROUTER_OUTBOX_BYTES = 8 * MIB
ROUTER_SLOW_MS = (
    200  # that a full outbox holds back the others, before its target gets a reader of its own
)
ROUTER_ISOLATED_MAX = (
    100  # routes of a topic that wait alone, or are paused, with readers of their own
)
ROUTE_HISTORY_READERS_MAX = (
    SPREAD_MEMBERS_MAX  # of a topic, one for each target of a route that reads its history
)
ROUTER_RETRY_MS_MIN = 100
ROUTER_RETRY_MS_MAX = 30 * SECOND_MS
ROUTER_READ_WAIT_MS = MINUTE_MS
