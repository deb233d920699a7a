"""`millstream webhook`: webhooks for queues and groups."""

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import Annotated, Any

import typer

from api.cli.descriptions.problems import webhook_problems
from api.cli.descriptions.sections import (
    Section,
    describe,
    rows_if_allowed,
    settings_section,
    without_empty,
)
from api.cli.errors import CliError, ExitCode
from api.cli.io.credentials_file import CredentialsFile, read_credentials
from api.cli.manifests.edit_verb import edit_verb
from api.cli.shell.definitions import Definition, delete_verb, pause_verbs, put_verbs, secret_note
from api.cli.shell.operations import JsonBody
from api.cli.shell.options import (
    Headers,
    Limit,
    Prefix,
    Settings,
    Yes,
    fields,
    moment,
    option,
)
from api.cli.shell.output import Row, table
from api.cli.shell.prompts import confirm
from api.cli.shell.terminal import Terminal, noun, verb

webhook = noun()

WEBHOOKS = table("name", "source", "url", "health.state", "health.delivered", "health.failed")
DELIVERIES = table("id", "status", "attempts", "first_at", "last_at", "next_at", "sent_at")

RECENT = 5  # deliveries in a description

Name = Annotated[str, typer.Argument(help="Webhook.")]
Names = Annotated[list[str], typer.Argument(help="Webhooks.")]


class DeliveryStatusOption(StrEnum):
    """Delivery status."""

    DELIVERED = "delivered"
    RETRYING = "retrying"
    FAILED = "failed"
    GAP = "gap"


StatusFilter = Annotated[
    DeliveryStatusOption | None, option("--status", "Only deliveries with this status.")
]


def _configuration(
    source: Annotated[str, typer.Argument(help="queue:NAME or group:NAME.")],
    target: Annotated[str, typer.Argument(help="URL to post to.", metavar="url")],
    headers: Headers = None,
    credentials: CredentialsFile = None,
    set_: Settings = None,
) -> dict[str, Any]:
    return fields(
        set_,
        source=source,
        url=target,
        headers=dict(headers) if headers else None,
        credentials=read_credentials(credentials),
    )


WEBHOOK = Definition(webhook, "Webhook", Name, "webhooks.{}_webhook", _configuration, secret_note)

put_verbs(
    WEBHOOK,
    create=[
        "millstream webhook create billing queue:orders https://example.com/hooks",
        "millstream webhook create ledger queue:orders https://example.com/ledger --set rate=10",
        "millstream webhook create crm queue:orders https://example.com/hooks --credentials-file oauth.json",
    ],
    apply=[
        "millstream webhook apply billing queue:orders https://example.com/hooks --dry-run",
    ],
)


edit_verb(WEBHOOK, "millstream webhook edit billing")


pause_verbs(
    WEBHOOK,
    pause="Pause deliveries until they are resumed.",
    resume="Resume deliveries that were paused.",
    example="billing",
)


@verb(webhook, "ls", examples=["millstream webhook ls"])
def list_webhooks(cli: Terminal, prefix: Prefix = "") -> None:
    """List webhooks and their health."""
    cli.out.rows(cli.pages("webhooks.list_webhooks", prefix=prefix), WEBHOOKS)


@verb(webhook, "show", examples=["millstream webhook show billing"])
def show(cli: Terminal, name: Name) -> None:
    """Show a webhook: problems, health, deliveries."""
    definition = _get(cli, name)
    recent = rows_if_allowed(lambda: islice(_deliveries(cli, name), RECENT))
    describe(
        cli,
        {**definition, "deliveries": recent},
        webhook_problems(definition),
        Section("health", without_empty(definition["health"])),
        Section("last deliveries", recent, DELIVERIES),
        settings_section(definition, "health"),
    )


def _deliveries(cli: Terminal, name: str, status: str | None = None) -> Iterator[Row]:
    return cli.pages("webhooks.list_deliveries", name, status=status)


def _get(cli: Terminal, name: str) -> Row:

    return cli.call("webhooks.get_webhook", name)


@verb(
    webhook,
    "deliveries",
    examples=[
        "millstream webhook deliveries billing",
        "millstream webhook deliveries billing --status failed -o ndjson",
    ],
)
def deliveries(cli: Terminal, name: Name, status: StatusFilter = None, limit: Limit = 50) -> None:
    """List deliveries, newest first."""
    cli.out.rows(islice(_deliveries(cli, name, status), limit), DELIVERIES)


@verb(
    webhook,
    "resend",
    examples=[
        "millstream webhook resend billing --response-status 503 --since 1h --dry-run",
        "millstream webhook resend billing --response-status 503 --since 1h --yes",
    ],
)
def resend(
    cli: Terminal,
    name: Name,
    delivery: Annotated[str | None, typer.Argument(help="Delivery id.")] = None,
    status: Annotated[
        DeliveryStatusOption | None, option("--status", "Status of deliveries; default: failed.")
    ] = None,
    response_status: Annotated[
        int | None, option("--response-status", "Only with this HTTP status last.", "N")
    ] = None,
    outcome: Annotated[
        str | None, option("--outcome", "Only with this outcome last, such as timeout.", "OUTCOME")
    ] = None,
    since: Annotated[Any, moment("--since", help="Only first attempted at or after this.")] = None,
    until: Annotated[Any, moment("--until", help="Only first attempted before this.")] = None,
    dry_run: Annotated[bool, option("--dry-run", "Count them without sending.")] = False,
    yes: Yes = False,
) -> None:
    """Resend one delivery, or all that match.

    Without an id, failed deliveries are counted, and after a confirmation sent, newest first. Fails if the receiver does not accept one.
    """
    chosen = fields(
        None,
        status=status,
        response_status=response_status,
        outcome=outcome,
        from_=since,
        to=until,
    )
    if delivery is not None:
        if chosen or dry_run:
            raise CliError("give a delivery id, or options that select several", ExitCode.USAGE)
        _attempt(cli, name, cli.call("webhooks.resend_delivery", name, delivery))
        return
    _resend_matching(cli, name, _resend_body(chosen), dry_run=dry_run, yes=yes)


def _resend_body(chosen: dict[str, Any]) -> dict[str, Any]:
    renamed = {"from_": "from"}
    return {
        renamed.get(key, key): value.isoformat() if isinstance(value, datetime) else value
        for key, value in chosen.items()
    }


def _resend_matching(
    cli: Terminal, name: str, body: dict[str, Any], *, dry_run: bool, yes: bool
) -> None:
    matched = _resend_round(cli, name, {**body, "dry_run": True})["matched"]
    counted = f"{matched} deliver{'y' if matched == 1 else 'ies'} of {name}"
    if dry_run:
        cli.out.done(f"{counted} would be resent.", {"matched": matched})
        return
    confirm(cli, f"{counted} will be resent.", name, yes=yes)
    sums = {"delivered": 0, "failed": 0, "skipped": 0}
    cursor: str | None = ""
    while cursor is not None:
        result = _resend_round(cli, name, {**body, "cursor": cursor})
        sums = {key: total + result[key] for key, total in sums.items()}
        cursor = result["next_cursor"]
    text = f"Delivered {sums['delivered']}, failed {sums['failed']}, skipped {sums['skipped']}."
    if sums["failed"] or sums["skipped"]:
        raise CliError(text, ExitCode.PARTIAL if sums["delivered"] else ExitCode.ERROR)
    cli.out.done(text, sums)


def _resend_round(cli: Terminal, name: str, body: dict[str, Any]) -> Row:
    return cli.call("webhooks.resend_deliveries", name, body=JsonBody(body))


@verb(webhook, "test")
def test(cli: Terminal, name: Name) -> None:
    """Send a test event now. Fails if the receiver does not accept it."""

    _attempt(cli, name, cli.call("webhooks.test_webhook", name))


def _attempt(cli: Terminal, name: str, attempt: Row) -> None:
    if attempt["outcome"] != "delivered":
        answer = attempt["status"] or attempt["error"] or "no response"
        raise CliError(f"webhook {name} was not delivered: {attempt['outcome']} ({answer})")
    cli.out.done(f"Delivered webhook {name}: {attempt['status']}.", attempt)


@delete_verb(WEBHOOK, Names, "millstream webhook rm billing ledger crm --yes")
def remove(cli: Terminal, name: str) -> str:
    """Delete webhooks and their logs. Messages in the source are kept."""
    return f"Webhook {name} of {_get(cli, name)['source']} will be deleted."
