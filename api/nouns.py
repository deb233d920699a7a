"""List of nouns, from which routes, pages, commands and tags are collected.

A noun names its modules; they are imported by the process that needs them, so the command line loads no web framework.
Users see the nouns in the order of this list. Lower layers have what a noun needs there: ADR 0065 names the places.
"""

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import NamedTuple


class DashboardPage(NamedTuple):
    """Entry of the dashboard's navigation and search.

    `key`: pressed after `g`. `action`: what a caller must be allowed to do on any name to see the entry; empty for all callers.
    `is_administrative`: listed below the others. `needs_all_namespaces`: for callers of all namespaces.
    """

    label: str
    path: str
    key: str
    action: str = ""
    is_administrative: bool = False
    needs_all_namespaces: bool = False


class NounDeclaration(NamedTuple):
    """A noun and the modules that serve it.

    `name`, `plural`: as in paths. `tag`: description of its tag in the OpenAPI document. `routes`: modules in `api.rest.routes`,
    each after those whose examples its own examples need. `pages`: modules in `api.admin.pages`. `icon`: an SVG path in a square
    of 20. `commands`: groups of verbs as `module:name` in `api.cli.commands`, listed below `heading`. `manifest`: operations of its definitions
    by verb, which YAML documents describe. `parent`: the noun that its objects belong to; there they are named `orders/billing`. `is_granted_by_name`: grants name objects of it.
    """

    name: str
    plural: str
    tag: str = ""
    routes: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    page: DashboardPage | None = None
    icon: str = ""
    help: str = ""
    heading: str = "Administration"
    commands: tuple[str, ...] = ()
    manifest: str = ""
    parent: str = ""
    is_granted_by_name: bool = False


NOUNS: tuple[NounDeclaration, ...] = (
    NounDeclaration(
        "overview",
        "overview",
        pages=("overview",),
        page=DashboardPage("Overview", "/ui", "o"),
        icon="M3 3h6v6H3zM11 3h6v4h-6zM11 9h6v8h-6zM3 11h6v6H3z",
    ),
    NounDeclaration(
        "queue",
        "queues",
        tag="Queues with at-least-once delivery.",
        routes=("queues", "messages", "queue_contents", "queue_copies", "moves"),
        pages=("queues", "queue", "queue_contents", "queue_message"),
        page=DashboardPage("Queues", "/ui/queues", "q", "queue:list"),
        icon="M3 5h14M3 10h14M3 15h8M14 13l3 2-3 2z",
        help="Queues.",
        heading="Queues and streams",
        commands=("queue:queue", "messages:messages", "dead_letters:letters"),
        manifest="queues.{}_queue",
        is_granted_by_name=True,
    ),
    NounDeclaration(
        "stream",
        "streams",
        tag="Ordered, replayable logs of records.",
        routes=("streams", "records", "columnar_records", "arrow_records", "shards"),
        pages=("streams", "stream", "stream_records", "stream_shards", "stream_archive"),
        page=DashboardPage("Streams", "/ui/streams", "s", "stream:list"),
        icon="M2 6c3-3 5 3 8 0s5 3 8 0M2 11c3-3 5 3 8 0s5 3 8 0M2 16c3-3 5 3 8 0s5 3 8 0",
        help="Streams.",
        heading="Queues and streams",
        commands=("stream:stream", "records:records"),
        manifest="streams.{}_stream",
        is_granted_by_name=True,
    ),
    NounDeclaration(
        "topic",
        "topics",
        tag="Publishing by subject, and routes to queues and streams.",
        routes=("topics", "topic_routes", "publications", "published_messages"),
        pages=("topics", "topic", "topic_messages", "topic_message"),
        page=DashboardPage("Topics", "/ui/topics", "t", "topic:list"),
        icon="M2 10h5M7 10l5-6h6M7 10h11M7 10l5 6h6M15.5 2L18 4l-2.5 2M15.5 8l2.5 2-2.5 2M15.5 14l2.5 2-2.5 2",
        help="Topics.",
        heading="Queues and streams",
        commands=("topic:topic",),
        manifest="topics.{}_topic",
        is_granted_by_name=True,
    ),
    NounDeclaration(
        "route",
        "routes",
        pages=("topic_route",),
        help="Routes of topics to queues and streams.",
        heading="Queues and streams",
        commands=("route:route",),
        manifest="topics.{}_route",
        parent="topic",
    ),
    NounDeclaration(
        "filter",
        "filters",
        tag="Matches of messages, and those of other systems.",
        routes=("filters",),
    ),
    NounDeclaration(
        "request",
        "requests",
        tag="Replies to requests: messages whose senders wait for an answer.",
        routes=("requests",),
    ),
    NounDeclaration(
        "group",
        "groups",
        tag="Consumer groups: members, assignments and offsets.",
        routes=("groups", "group_records"),
        pages=("groups",),
        page=DashboardPage("Groups", "/ui/groups", "c", "group:list"),
        icon="M7 9a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM2 16c0-3 2-4.5 5-4.5s5 1.5 5 4.5"
        "M13 9a2 2 0 1 0 0-4M14 11.5c2.5.3 4 1.8 4 4.5",
        help="Consumer groups.",
        heading="Queues and streams",
        commands=("group:group",),
        manifest="groups.{}_consumer_group",
        is_granted_by_name=True,
    ),
    NounDeclaration(
        "view",
        "views",
        tag="Views: rows that a SQL query over a stream keeps up to date.",
        routes=("views", "view_rows", "view_backtests"),
        pages=("views", "view_sources"),
        page=DashboardPage("Views", "/ui/views", "v", "view:list"),
        icon="M3 4h14v12H3zM3 8h14M3 12h14M8 8v8",
        help="Rows of SQL queries over streams.",
        heading="Queues and streams",
        commands=("view:view",),
        manifest="views.{}_view",
        is_granted_by_name=True,
    ),
    NounDeclaration(
        "query",
        "queries",
        tag="SQL queries over streams, tables and the rows of views, which run once.",
        routes=("queries",),
        pages=("queries",),
        page=DashboardPage("Queries", "/ui/queries", "e", "query:run"),
        icon="M4 4h12M4 8h7M4 12h4M13.5 16a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM16 15l2.5 2.5",
        help="SQL queries that run once.",
        heading="Queues and streams",
        commands=("query:query",),
    ),
    NounDeclaration(
        "source",
        "sources",
        tag="Reception of webhooks of other services.",
        routes=("sources",),
        pages=("sources",),
        page=DashboardPage("Sources", "/ui/sources", "i", "source:list"),
        icon="M3 10h9M9 6.5l3.5 3.5L9 13.5M12 3h4a1 1 0 0 1 1 1v12a1 1 0 0 1-1 1h-4",
        help="Receivers of other services' webhooks.",
        heading="Queues and streams",
        commands=("source:source",),
        is_granted_by_name=True,
    ),
    NounDeclaration(
        "mirror",
        "mirrors",
        tag="Copies of streams of another deployment.",
        routes=("mirrors",),
        pages=("mirrors",),
        page=DashboardPage("Mirrors", "/ui/mirrors", "m", "mirror:list"),
        icon="M10 3v14M7 6.5L3.5 10 7 13.5M13 6.5l3.5 3.5-3.5 3.5",
        help="Copies of another deployment's streams.",
        heading="Queues and streams",
        commands=("mirror:mirror",),
        manifest="mirrors.{}_mirror",
        is_granted_by_name=True,
    ),
    NounDeclaration(
        "webhook",
        "webhooks",
        tag="Delivery of messages and records to a URL.",
        routes=("webhooks", "webhook_deliveries"),
        pages=("webhooks",),
        page=DashboardPage("Webhooks", "/ui/webhooks", "w", "webhook:list"),
        icon="M10 3a3 3 0 0 1 2.6 4.5L15 12M10 3a3 3 0 0 0-2.6 4.5L5 12M5 12a3 3 0 1 0 3 3h4.5"
        "M15 12a3 3 0 1 1-2.5 4.6",
        help="Delivery of queues and groups to a URL.",
        heading="Queues and streams",
        commands=("webhook:webhook",),
        manifest="webhooks.{}_webhook",
        is_granted_by_name=True,
    ),
    NounDeclaration("series", "series", routes=("timeseries",)),
    NounDeclaration(
        "write",
        "writes",
        tag="Two-phase writes: stage records, then commit.",
        routes=("staged_writes",),
    ),
    NounDeclaration(
        "archive",
        "archives",
        tag="Streams in Parquet files.",
        routes=("archives",),
        help="Archived streams (Parquet files).",
        heading="Archive",
        commands=("archive:archive",),
    ),
    NounDeclaration(
        "replay",
        "replays",
        tag="Replays of stream records.",
        routes=("replays",),
        pages=("replays",),
        page=DashboardPage("Replays", "/ui/replays", "r", "replay:list"),
        icon="M4 4v5h5M4.5 9A6.5 6.5 0 1 1 3.5 11",
        help="Replays of stream records.",
        heading="Archive",
        commands=("replay:replay",),
    ),
    NounDeclaration(
        "job",
        "jobs",
        tag="Long-running work of the Spark workers.",
        routes=("jobs",),
        help="Spark jobs.",
        heading="Archive",
        commands=("job:job",),
    ),
    NounDeclaration(
        "socket",
        "sockets",
        tag="WebSocket connections.",
        routes=("sockets",),
        pages=("sockets",),
        page=DashboardPage("Sockets", "/ui/sockets", "k", "socket:list"),
        icon="M7 2v4M13 2v4M5 6h10v3a5 5 0 0 1-10 0zM10 14v4",
        help="WebSocket connections.",
        commands=("socket:socket",),
    ),
    NounDeclaration(
        "alert",
        "alerts",
        tag="Alerts of the dashboard, which can be muted.",
        routes=("alerts",),
    ),
    NounDeclaration(
        "process",
        "processes",
        tag="Processes of the deployment.",
        routes=("processes",),
        help="Processes of the deployment.",
        commands=("socket:process",),
    ),
    NounDeclaration(
        "store",
        "stores",
        tag="Stores of the deployment and their replication.",
        routes=("stores",),
        pages=("stores",),
        page=DashboardPage(
            "Stores",
            "/ui/stores",
            "d",
            "store:read",
            is_administrative=True,
            needs_all_namespaces=True,
        ),
        icon="M10 3c4 0 6 1 6 2.5S14 8 10 8 4 7 4 5.5 6 3 10 3zM4 5.5v9C4 16 6 17 10 17s6-1 6-2.5v-9"
        "M4 10c0 1.5 2 2.5 6 2.5s6-1 6-2.5",
        help="Stores and their replication.",
        commands=("store:store",),
    ),
    NounDeclaration(
        "spark",
        "spark",
        help="Executors of a Spark cluster.",
        commands=("spark:spark",),
    ),
    NounDeclaration(
        "namespace",
        "namespaces",
        tag="Tenants and their quotas.",
        routes=("namespaces",),
        pages=("namespaces",),
        page=DashboardPage(
            "Namespaces",
            "/ui/namespaces",
            "n",
            "admin:namespaces",
            is_administrative=True,
            needs_all_namespaces=True,
        ),
        icon="M3 7l7-4 7 4-7 4zM3 10.5l7 4 7-4M3 14l7 4 7-4",
        help="Namespaces (tenants) and their quotas.",
        commands=("namespace:namespace",),
    ),
    NounDeclaration(
        "key",
        "keys",
        tag="API keys, access key pairs and permissions.",
        routes=("keys", "identity"),
        pages=("keys",),
        page=DashboardPage("Keys", "/ui/keys", "a", "admin:keys", is_administrative=True),
        icon="M7 13a4 4 0 1 1 3.5-6H18v3h-2v2h-3v-2h-2.5A4 4 0 0 1 7 13zM7 9h.01",
        help="API keys and permissions.",
        commands=("key:key",),
    ),
    NounDeclaration(
        "audit",
        "audit",
        tag="Tamper-evident log of administrative calls.",
        routes=("audit",),
        pages=("audit",),
        page=DashboardPage("Audit", "/ui/audit", "l", "audit:read", is_administrative=True),
        icon="M5 2h8l3 3v13H5zM8 8h5M8 11h5M8 14h3",
        help="Audit log of administrative calls.",
        commands=("audit:audit",),
    ),
    NounDeclaration(
        "health",
        "health",
        tag="Checks for supervisors and load balancers.",
        routes=("health",),
        pages=("system",),
        page=DashboardPage("System", "/ui/system", "y", "metrics:read", is_administrative=True),
        icon="M3 4h14v5H3zM3 11h14v5H3zM6 6.5h.01M6 13.5h.01",
    ),
    NounDeclaration(
        "profile",
        "profiles",
        help="Services by name.",
        heading="This command line",
        commands=("profile:profile",),
    ),
    NounDeclaration(
        "config",
        "config",
        help="Effective settings and their sources.",
        heading="This command line",
        commands=("config:config",),
    ),
)


def load_modules(package: str, names: Sequence[str]) -> tuple[ModuleType, ...]:
    """Import modules of a package, as a noun names them."""
    return tuple(import_module(f"{package}.{name}") for name in names)
