"""`millstream topic`: topics, publishing, and why routes take a message."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from api.cli.descriptions.back_tests import Wait, describe_job, describe_result, start_job
from api.cli.descriptions.sections import Section, describe, rows_if_allowed, settings_section
from api.cli.errors import CliError, ExitCode
from api.cli.io.match_options import FilterText, Subjects, Where, match_of
from api.cli.io.spread_members import show_member, show_members
from api.cli.manifests.edit_verb import edit_verb
from api.cli.shell.definitions import Definition, change_verb, delete_verb, put_verbs
from api.cli.shell.operations import JsonBody
from api.cli.shell.options import Headers, Prefix, Settings, duration, fields, moment, option
from api.cli.shell.output import Column, Row, table
from api.cli.shell.terminal import Terminal, noun, verb

topic = noun()


class DedupScopeOption(StrEnum):
    """Scope of deduplication ids."""

    TOPIC = "topic"
    KEY = "key"


TOPICS = table(
    "name", "type", Column("open_shards", "shards"), "unmatched", "retention_seconds", "archive"
)
ROUTES = table(
    "name",
    Column("target.queue", "queue"),
    Column("target.stream", "stream"),
    Column("target.topic", "topic"),
    Column("target.spread", "spread", show_members),
    "match",
    "paused",
)
PUBLISHED = table("id", "shard", "offset", "routes", "duplicate", "error")
MEMBER = Column("member", show=show_member)
EXPLANATIONS = table("route", "matches", MEMBER, "failed")
MESSAGE_ROUTES = table("route", "number", "state", MEMBER)

Name = Annotated[str, typer.Argument(help="Topic.")]
Names = Annotated[list[str], typer.Argument(help="Topics.")]
Body = Annotated[str, typer.Argument(help="Body of the message.")]
SubjectOption = Annotated[
    str, option("--subject", "Subject, words with dots between: order.created.", "SUBJECT")
]
KeyOption = Annotated[str, option("--key", "Key: messages with the same key stay in order.", "KEY")]
DedupIdOption = Annotated[
    str,
    option("--dedup-id", "Deduplication id: repeats within five minutes are ignored.", "ID"),
]
AsJson = Annotated[bool, option("--json", "Treat bodies as JSON values.")]


def _configuration(
    fifo: Annotated[
        bool,
        option("--fifo", "Create a FIFO topic: messages have a key, and a deduplication id."),
    ] = False,
    by_content: Annotated[
        bool | None,
        option(
            "--dedup-by-content/--no-dedup-by-content",
            "Use the SHA-256 of the body as deduplication id (FIFO topics).",
        ),
    ] = None,
    scope: Annotated[
        DedupScopeOption | None,
        option("--dedup-scope", "Scope of deduplication ids (FIFO topics)."),
    ] = None,
    shards: Annotated[int | None, option("--shards", "Number of shards.")] = None,
    refuse: Annotated[
        bool | None,
        option("--refuse-unmatched/--drop-unmatched", "Refuse messages that no route takes."),
    ] = None,
    retention: Annotated[Any, duration("--retention", help="Retention period.")] = None,
    set_: Settings = None,
) -> dict[str, Any]:
    unmatched = None if refuse is None else "refuse" if refuse else "drop"
    return fields(
        set_,
        type="fifo" if fifo else None,
        deduplicate_by_content=by_content,
        dedup_scope=scope,
        shards=shards,
        unmatched=unmatched,
        retention_seconds=retention,
    )


TOPIC = Definition(topic, "Topic", Name, "topics.{}_topic", _configuration)

put_verbs(
    TOPIC,
    create=[
        "millstream topic create orders",
        "millstream topic create tasks --refuse-unmatched",
        "millstream topic create payments --fifo --dedup-scope key",
    ],
    apply=["millstream topic apply orders --retention 1d --dry-run"],
)


edit_verb(TOPIC, "millstream topic edit orders")


change_verb(
    TOPIC, "millstream topic change orders --retention 1d", without=("fifo", "scope", "shards")
)


@verb(topic, "ls", examples=["millstream topic ls", "millstream topic ls --prefix or"])
def list_topics(cli: Terminal, prefix: Prefix = "") -> None:
    """List topics."""
    cli.out.rows(cli.pages("topics.list_topics", prefix=prefix), TOPICS)


@verb(topic, "show", examples=["millstream topic show orders"])
def show(cli: Terminal, name: Name) -> None:
    """Show a topic: counts, routes and settings."""
    definition = cli.call("topics.get_topic", name)
    stats = cli.call("topics.get_topic_stats", name)
    routes = rows_if_allowed(lambda: cli.pages("topics.list_routes", name))
    describe(
        cli,
        {**definition, "stats": stats, "route_list": routes},
        [],
        Section("stats", stats),
        Section("routes", routes, ROUTES),
        settings_section(definition),
    )


def _message(
    body: str, *, subject: str, key: str, as_json: bool, headers: list[Any] | None = None
) -> Row:
    from api.cli.io.rows import parse_json

    value = parse_json(body.encode()) if as_json else body
    return {"body": value, "subject": subject, "key": key, "headers": dict(headers or [])}


@verb(
    topic,
    "publish",
    examples=[
        "millstream topic publish orders hello --subject order.created",
        'millstream topic publish orders \'{"id":1,"vip":true}\' --json --subject order.created --key c7',
        "millstream topic publish payments 'paid 7' --key c7 --dedup-id payment-7",
    ],
)
def publish(
    cli: Terminal,
    name: Name,
    bodies: Annotated[list[str], typer.Argument(help="Messages to publish.")],
    subject: SubjectOption = "",
    key: KeyOption = "",
    as_json: AsJson = False,
    headers: Headers = None,
    dedup_id: DedupIdOption = "",
    delay: Annotated[Any, duration("--delay", help="Delay of copies in queues.")] = None,
    ttl: Annotated[Any, duration("--ttl", help="Time to live of copies in queues.")] = None,
    priority: Annotated[
        int, option("--priority", "Priority of copies in standard queues, 0 to 9.")
    ] = 0,
) -> None:
    """Publish messages to a topic."""
    options = fields(None, delay_seconds=delay, ttl_seconds=ttl)
    options |= {"dedup_id": dedup_id, "priority": priority}
    messages = [
        _message(body, subject=subject, key=key, as_json=as_json, headers=headers) | options
        for body in bodies
    ]
    body = JsonBody({"messages": messages})
    published = cli.call("topics.publish_messages", name, body=body)
    cli.out.rows(iter(published["messages"]), PUBLISHED)


@verb(
    topic,
    "explain",
    examples=[
        "millstream topic explain orders hello --subject refund.created",
        "millstream topic explain orders '{\"total\":50}' --json --subject order.created",
    ],
)
def explain(
    cli: Terminal,
    name: Name,
    body: Body = "",
    subject: SubjectOption = "",
    key: KeyOption = "",
    as_json: AsJson = False,
    headers: Headers = None,
    message_id: Annotated[
        str, option("--id", "Explain this published message instead.", "ID")
    ] = "",
    route: Annotated[str, option("--route", "Explain this route alone.", "ROUTE")] = "",
) -> None:
    """Explain which routes take a message.

    For the others, the conditions that fail are shown.
    """
    message = _message(body, subject=subject, key=key, as_json=as_json, headers=headers)
    request: Row = {"id": message_id} if message_id else {"message": message}
    if route:
        request["route"] = route
    explained = cli.call("topics.explain_message", name, body=JsonBody(request))
    cli.out.rows(iter(explained["routes"]), EXPLANATIONS)


@verb(
    topic,
    "backtest",
    examples=[
        "millstream topic backtest orders --subject 'order.#'",
        'millstream topic backtest orders --filter \'{"body":{"vip":[true]}}\' --since 2h',
        "millstream topic backtest orders --subject 'order.#' --job --no-wait",
    ],
)
def backtest(
    cli: Terminal,
    name: Name,
    subjects: Subjects = None,
    filter_: FilterText = None,
    where: Where = None,
    compare_with: Annotated[
        str | None, option("--compare-with", "Route whose match is evaluated too.", "ROUTE")
    ] = None,
    since: Annotated[Any, moment("--since", help="Start with messages since then.")] = None,
    until: Annotated[Any, moment("--until", help="Stop before messages since then.")] = None,
    messages_max: Annotated[
        int | None, option("--max", "Messages to evaluate at most.", "NUMBER")
    ] = None,
    as_job: Annotated[
        bool, option("--job", "Evaluate all messages in a job, also archived ones.")
    ] = False,
    wait: Wait = True,
    job_id: Annotated[str, option("--id", "Show the result of this job instead.", "ID")] = "",
) -> None:
    """Evaluate a match on a topic's messages.

    With --compare-with, messages that the match takes and the route does not are gained, the others are lost.
    """
    if job_id:
        describe_job(cli, cli.call("topics.get_backtest_job", name, job_id))
        return
    request = fields(
        None,
        match=match_of(subjects, filter_, where),
        compare_with=compare_with,
        start_time=since and since.isoformat(),
        end_time=until and until.isoformat(),
        messages_max=messages_max,
    )
    if not as_job:
        describe_result(cli, cli.call("topics.backtest_match", name, body=JsonBody(request)))
    elif messages_max is not None:
        raise CliError("--max cannot be combined with --job", ExitCode.USAGE)
    else:
        start_job(cli, name, request, wait=wait)


@verb(
    topic,
    "message",
    examples=[
        "ID=$(millstream topic publish orders hello -o json | jq -r '.[0].id')",
        'millstream topic message orders "$ID"',
    ],
)
def message(
    cli: Terminal,
    name: Name,
    message_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the message.")],
) -> None:
    """Show a published message and its routes."""
    published = cli.call("topics.get_published_message", name, message_id)
    routes = cli.call("topics.get_message_routes", name, message_id)["routes"]
    describe(
        cli,
        {**published, "routes": routes},
        [],
        Section("message", published),
        Section("routes", routes, MESSAGE_ROUTES),
    )


@delete_verb(TOPIC, Names, "millstream topic rm orders --yes")
def remove(cli: Terminal, name: str) -> str:
    """Delete topics with their messages and routes. Targets of routes are kept."""
    stats = cli.call("topics.get_topic_stats", name)
    return (
        f"Topic {name} will be deleted with {stats['messages']} messages and {stats['routes']} routes; "
        f"{stats['lag_messages']} messages are not yet delivered."
    )
