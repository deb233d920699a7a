"""`millstream route`: routes of topics."""

from typing import Annotated, Any

import typer

from api.cli.descriptions.sections import Section, describe, settings_section
from api.cli.grammar.common_options import parsed_by
from api.cli.grammar.parsers import EARLIEST, LATEST, parse_time
from api.cli.io.credentials_file import CredentialsFile, read_credentials
from api.cli.io.match_options import FilterText, Subjects, Where, match_of
from api.cli.io.spread_members import parse_member, show_members
from api.cli.manifests.edit_verb import edit_verb
from api.cli.manifests.kinds import parts_of
from api.cli.shell.clock import now
from api.cli.shell.definitions import (
    Definition,
    change_verb,
    delete_verb,
    pause_verbs,
    put_verbs,
    secret_note,
)
from api.cli.shell.options import Headers, Prefix, Settings, fields, option
from api.cli.shell.output import Column, table
from api.cli.shell.terminal import Terminal, noun, verb

route = noun()

ROUTES = table(
    "name",
    Column("target.queue", "queue"),
    Column("target.stream", "stream"),
    Column("target.topic", "topic"),
    Column("target.spread", "spread", show_members),
    Column("target.url", "url"),
    "match",
    "cost",
    "paused",
)

Name = Annotated[
    str,
    typer.Argument(
        metavar="TOPIC/ROUTE",
        help="Route of a topic, of a stream as in stream:clicks/tasks, or of a queue as in queue:jobs/all.",
    ),
]
Names = Annotated[
    list[str],
    typer.Argument(
        metavar="TOPIC/ROUTE",
        help="Routes of topics, of streams as in stream:clicks/tasks, or of queues as in queue:jobs/all.",
    ),
]


def parse_start(text: str) -> dict[str, Any]:
    """Parse the start of a route into its fields. Raises ValueError."""
    if text in EARLIEST:
        return {"start": "earliest"}
    if text in LATEST:
        return {"start": "latest"}
    return {"start": "time", "start_time": parse_time(text, now())}


def _configuration(
    queue: Annotated[str | None, option("--queue", "Queue that receives messages.")] = None,
    stream: Annotated[str | None, option("--stream", "Stream that receives messages.")] = None,
    topic: Annotated[str | None, option("--topic", "Topic that receives messages.")] = None,
    spread: Annotated[
        list[Any] | None,
        typer.Option(
            "--spread",
            parser=parsed_by(parse_member),
            metavar="KIND:NAME[=WEIGHT]",
            help="Member of a spread, such as queue:worker-1=2; repeat for all.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        option("--by", "key, subject or random: what a member of a spread depends on.", "PART"),
    ] = None,
    target_url: Annotated[
        str | None, option("--target-url", "URL that messages are posted to.", "URL")
    ] = None,
    ordered: Annotated[
        bool, option("--ordered", "Post messages of one key to the URL one after another.")
    ] = False,
    headers: Headers = None,
    credentials: CredentialsFile = None,
    subjects: Subjects = None,
    filter_: FilterText = None,
    where: Where = None,
    unmatched: Annotated[
        bool, option("--unmatched", "Take the messages that no other live route takes.")
    ] = False,
    shadow: Annotated[bool, option("--shadow", "Count messages, and deliver none.")] = False,
    start: Annotated[
        Any,
        typer.Option(
            "--start",
            parser=parsed_by(parse_start),
            metavar="TIME",
            help="Of a new route: latest, earliest, or a time such as 2h.",
        ),
    ] = None,
    on_failure: Annotated[
        str | None,
        option("--on-failure", "wait, dead_letter or drop, without the target.", "POLICY"),
    ] = None,
    dead_letter_queue: Annotated[
        str | None,
        option("--dead-letter-queue", "Queue for messages that the target never accepts."),
    ] = None,
    set_: Settings = None,
) -> dict[str, Any]:
    target = fields(
        None,
        queue=queue,
        stream=stream,
        topic=topic,
        spread=spread or None,
        by=by,
        url=target_url,
        ordered=ordered or None,
        headers=dict(headers) if headers else None,
        credentials=read_credentials(credentials),
    )
    match = "unmatched" if unmatched else match_of(subjects, filter_, where)
    return fields(
        set_,
        match=match,
        target=target or None,
        mode="shadow" if shadow else None,
        **(start or {}),
        on_failure=on_failure,
        dead_letter_queue=dead_letter_queue,
    )


ROUTE = Definition(
    route,
    "Route",
    Name,
    "topics.{}_route",
    _configuration,
    secret_note,
    path=lambda name: parts_of(name),
)

put_verbs(
    ROUTE,
    create=[
        "millstream route create orders/billing --queue billing --subject 'order.*'",
        'millstream route create orders/vip --queue crm --filter \'{"body":{"vip":[true]}}\'',
        "millstream route create orders/work --spread queue:worker-1=2 --spread queue:worker-2",
        "millstream route create orders/crm --target-url https://crm.example/hooks --header x-team=crm",
        "millstream route create orders/rest --queue unrouted --unmatched --start 2h",
        "millstream route create queue:retries/all --queue orders",
        'millstream route create stream:clicks/tasks --queue tasks --filter \'{"body":{"vip":[true]}}\'',
    ],
    apply=["millstream route apply orders/billing --queue billing --subject 'order.#' --dry-run"],
)


edit_verb(ROUTE, "millstream route edit orders/billing")


change_verb(ROUTE, "millstream route change orders/billing --on-failure drop", without=())


@verb(route, "ls", examples=["millstream route ls orders"])
def list_routes(
    cli: Terminal,
    topic: Annotated[str, typer.Argument(help="Topic.")],
    prefix: Prefix = "",
) -> None:
    """List the routes of a topic."""
    cli.out.rows(cli.pages("topics.list_routes", topic, prefix=prefix), ROUTES)


@verb(route, "show", examples=["millstream route show orders/billing"])
def show(cli: Terminal, name: Name) -> None:
    """Show a route: counts, lag and settings."""
    definition = cli.call("topics.get_route", *parts_of(name))
    stats = cli.call("topics.get_route_stats", *parts_of(name))
    describe(
        cli,
        {**definition, "stats": stats},
        [f"delivery fails: {stats['last_failure']}"] if stats["state"] == "failing" else [],
        Section("stats", stats),
        settings_section(definition),
    )


pause_verbs(
    ROUTE,
    pause="Pause a route. Messages that it takes wait in the topic's log.",
    resume="Resume a paused route.",
    example="orders/billing",
)


@delete_verb(ROUTE, Names, "millstream route rm orders/billing --yes")
def remove(cli: Terminal, name: str) -> str:
    """Delete routes. Messages that they have taken and not delivered are dropped."""
    stats = cli.call("topics.get_route_stats", *parts_of(name))
    return f"Route {name} will be deleted; up to {stats['lag_messages']} messages are not yet delivered."
