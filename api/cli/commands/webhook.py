"""`millstream webhook`: webhooks for queues and groups."""

from collections.abc import Iterator
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
from api.cli.errors import CliError
from api.cli.manifests.edit_verb import edit_verb
from api.cli.shell.definitions import Definition, delete_verb, pause_verbs, put_verbs
from api.cli.shell.options import Headers, Limit, Prefix, Settings, fields, option
from api.cli.shell.output import Row, table
from api.cli.shell.terminal import Terminal, noun, verb

webhook = noun()

WEBHOOKS = table("name", "source", "url", "health.state", "health.delivered", "health.failed")
DELIVERIES = table("id", "status", "attempts", "first_at", "last_at", "next_at", "sent_at")

RECENT = 5  # deliveries in a description

Name = Annotated[str, typer.Argument(help="Webhook.")]
Names = Annotated[list[str], typer.Argument(help="Webhooks.")]
Delivery = Annotated[str, typer.Argument(help="Delivery id.")]


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
    set_: Settings = None,
) -> dict[str, Any]:
    return fields(set_, source=source, url=target, headers=dict(headers) if headers else None)


def _secret_note(webhook: Row) -> str:
    """Return a sentence with the secret of a new webhook, which is printed once."""
    return f" Secret: {webhook['secret']}" if webhook.get("secret") else ""


WEBHOOK = Definition(webhook, "Webhook", Name, "webhooks.{}_webhook", _configuration, _secret_note)

put_verbs(
    WEBHOOK,
    create=[
        "millstream webhook create billing queue:orders https://example.com/hooks",
        "millstream webhook create ledger queue:orders https://example.com/ledger --set rate=10",
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


@verb(webhook, "resend")
def resend(cli: Terminal, name: Name, delivery: Delivery) -> None:
    """Resend a delivery now. Fails if the receiver does not accept it."""

    _attempt(cli, name, cli.call("webhooks.resend_delivery", name, delivery))


@verb(webhook, "test")
def test(cli: Terminal, name: Name) -> None:
    """Send a test event now. Fails if the receiver does not accept it."""

    _attempt(cli, name, cli.call("webhooks.test_webhook", name))


def _attempt(cli: Terminal, name: str, attempt: Row) -> None:
    if attempt["outcome"] != "delivered":
        answer = attempt["status"] or attempt["error"] or "no response"
        raise CliError(f"webhook {name} was not delivered: {attempt['outcome']} ({answer})")
    cli.out.done(f"Delivered webhook {name}: {attempt['status']}.", attempt)


@delete_verb(WEBHOOK, Names, "millstream webhook rm billing ledger --yes")
def remove(cli: Terminal, name: str) -> str:
    """Delete webhooks and their logs. Messages in the source are kept."""
    return f"Webhook {name} of {_get(cli, name)['source']} will be deleted."
