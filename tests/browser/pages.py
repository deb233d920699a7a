"""Every page of the dashboard, for tests that apply to all of them."""

from typing import NamedTuple


class At(NamedTuple):
    """A page: a name for screenshots, its path, and the maximum numbers of store calls and bytes.

    `{message}` in a path: the id of a message of the topic `events`.
    """

    name: str
    path: str
    calls_max: int = 60
    bytes_max: int = 100_000


PAGES = [
    At("overview", "/ui"),
    At("queues", "/ui/queues", 120),  # two calls for each of at most fifty rows
    At("queues-none", "/ui/queues?q=nothing-is-called-so"),
    At("queue", "/ui/queues/orders"),
    At("queue-messages", "/ui/queues/emails/messages"),
    At(
        "queue-messages-filtered", "/ui/queues/orders/messages?body=/order=7&columns=/order&from=1d"
    ),
    At("queue-message", "/ui/queues/orders/messages/7"),
    At("queue-message-hostile", "/ui/queues/invoices/messages/0"),
    At("queue-dead-letters", "/ui/queues/invoices/dead-letters"),
    At(
        "queue-dead-letters-filtered",
        "/ui/queues/invoices/dead-letters?reason=card+declined&columns=/customer,/total",
    ),
    At("queue-groups", "/ui/queues/payments/groups"),
    At("queue-consumers", "/ui/queues/emails/consumers"),
    At("queue-consumers-none", "/ui/queues/quiet/consumers"),
    At("queue-settings", "/ui/queues/orders/settings"),
    At("queue-routes-none", "/ui/queues/quiet/routes"),
    At("queue-code", "/ui/queues/orders/code"),
    At("queue-empty", "/ui/queues/quiet"),
    At("webhooks", "/ui/webhooks"),
    At("webhook", "/ui/webhooks/crm"),
    At("webhook-delivery", "/ui/webhooks/crm/deliveries/event-01"),
    At("webhook-filtered", "/ui/webhooks/crm?status=failed&outcome=connection&since=1d"),
    At("sources", "/ui/sources"),
    At("source", "/ui/sources/github"),
    At("views", "/ui/views"),
    At("view", "/ui/views/page-clicks"),
    At("view-filtered", "/ui/views/page-clicks?key=no-such-page"),
    At("view-sources-none", "/ui/views/page-clicks/sources?key=no-such-page"),
    At("queries", "/ui/queries"),
    At("mirrors", "/ui/mirrors"),
    At("mirror", "/ui/mirrors/eu"),
    At("sockets", "/ui/sockets"),
    At("keys", "/ui/keys"),
    At("namespaces", "/ui/namespaces"),
    At("audit", "/ui/audit"),
    At("reference", "/ui/reference", bytes_max=900_000),  # Swagger UI and the document
    At(
        "system", "/ui/system", 300
    ),  # measures the store's latency with more than a hundred round trips
    At("stores", "/ui/stores"),
    At("system-jobs", "/ui/system/jobs"),
    At("system-settings", "/ui/system/settings"),
    At("streams", "/ui/streams"),
    At("streams-none", "/ui/streams?q=nothing-is-called-so"),
    At("stream", "/ui/streams/clicks"),
    At("stream-browse", "/ui/streams/clicks/browse"),
    At("stream-browse-hostile", "/ui/streams/readings/browse?see=0:41"),
    At("stream-browse-hex", "/ui/streams/readings/browse?see=0:44&form=hex"),
    At("stream-browse-offset", "/ui/streams/clicks/browse?at=offset&shard=0&offset=10&see=0:12"),
    At("stream-browse-fields", "/ui/streams/clicks/browse?columns=/n,/page&body=/n=3&at=earliest"),
    At("stream-browse-archive", "/ui/streams/ledger/browse?at=earliest&shard=0"),
    At("stream-browse-live", "/ui/streams/clicks/browse?at=live"),
    At("stream-browse-empty", "/ui/streams/silent/browse"),
    At("stream-shards", "/ui/streams/clicks/shards"),
    At("stream-groups", "/ui/streams/clicks/groups"),
    At("stream-groups-none", "/ui/streams/silent/groups"),
    At("stream-archive", "/ui/streams/ledger/archive"),
    At("stream-settings", "/ui/streams/clicks/settings"),
    At("stream-code", "/ui/streams/clicks/code"),
    At("topics", "/ui/topics"),
    At("topics-none", "/ui/topics?q=nothing-is-called-so"),
    At("topic", "/ui/topics/events"),
    At("topic-routes-filtered", "/ui/topics/events?q=b"),
    At("topic-without-routes", "/ui/topics/quiet-events"),
    At("topic-try", "/ui/topics/events/try"),
    At("topic-backtest", "/ui/topics/events/backtest"),
    At("topic-messages", "/ui/topics/events/messages"),
    At("topic-messages-searched", "/ui/topics/events/messages?q=order&time=1d"),
    At("topic-messages-none", "/ui/topics/quiet-events/messages"),
    At("topic-message", "/ui/topics/events/messages/{message}"),
    At("topic-settings", "/ui/topics/events/settings"),
    At("topic-stream", "/ui/streams/topic:events"),
    At("stream-routes", "/ui/topics/stream:audited"),
    At("stream-routes-records", "/ui/topics/stream:audited/messages"),
    At("stream-routes-try", "/ui/topics/stream:audited/try"),
    At("stream-route", "/ui/topics/stream:audited/routes/tasks"),
    At("topic-stream-browse", "/ui/streams/topic:events/browse?see=0:2"),
    At("route", "/ui/topics/events/routes/large-orders"),
    At("route-failing", "/ui/topics/events/routes/warehouse"),
    At("groups", "/ui/groups"),
    At("group", "/ui/groups/analytics"),
    At("replays", "/ui/replays"),
    At("replay-running", "/ui/replays/replay-running"),
    At("replay-failed", "/ui/replays/replay-failed"),
]
