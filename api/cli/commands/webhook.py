"""`millstream webhook`: webhooks for queues and groups."""

from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from typing import Annotated, Any

import typer

from api.cli.errors import CliError
from api.cli.shell.definitions import Definition, put_verbs
from api.cli.shell.options import Headers, Limit, Prefix, Settings, Yes, fields
from api.cli.shell.output import Row, table, to_row
from api.cli.shell.prompts import confirm
from api.cli.shell.terminal import Terminal, noun, verb

webhook = noun()

WEBHOOKS = table("name", "source", "url", "health.state", "health.delivered", "health.failed")
DELIVERIES = table("id", "status", "attempts", "first_at", "last_at", "next_at", "sent_at")

Name = Annotated[str, typer.Argument(help="Webhook.")]
Delivery = Annotated[str, typer.Argument(help="Delivery id.")]


class DeliveryStatusOption(StrEnum):
    """Delivery status."""

    DELIVERED = "delivered"
    RETRYING = "retrying"
    FAILED = "failed"
    GAP = "gap"


def _configuration(
    source: Annotated[str, typer.Argument(help="queue:NAME or group:NAME.")],
    target: Annotated[str, typer.Argument(help="URL to post to.", metavar="url")],
    headers: Headers = None,
    set_: Settings = None,
) -> dict[str, Any]:
    return fields(set_, source=source, url=target, headers=dict(headers) if headers else None)


def _put(name: str, **conditions: Any) -> Any:
    from millstream_client.core.api.webhooks.put_webhook import put_webhook
    from millstream_client.core.models.webhook_config import WebhookConfig

    return put_webhook(name, body=WebhookConfig(source="", url=""), **conditions)


def _secret_note(webhook: Row) -> str:
    """Return a sentence with the secret of a new webhook, which is printed once."""
    return f" Secret: {webhook['secret']}" if webhook.get("secret") else ""


put_verbs(
    webhook,
    Definition("Webhook", Name, _put, _configuration, _secret_note),
    create=[
        "millstream webhook create billing queue:orders https://example.com/hooks",
        "millstream webhook create ledger queue:orders https://example.com/ledger --set rate=10",
    ],
    apply=[
        "millstream webhook apply billing queue:orders https://example.com/hooks --dry-run",
    ],
)


@verb(webhook, "pause", examples=["millstream webhook pause billing"])
def pause(cli: Terminal, name: Name) -> None:
    """Pause deliveries until they are resumed."""
    from millstream_client.core.api.webhooks.pause_webhook import pause_webhook

    cli.out.done(f"Webhook {name} paused.", to_row(cli.client.call(pause_webhook(name))))


@verb(webhook, "resume", examples=["millstream webhook resume billing"])
def resume(cli: Terminal, name: Name) -> None:
    """Resume deliveries that were paused."""
    from millstream_client.core.api.webhooks.resume_webhook import resume_webhook

    cli.out.done(f"Webhook {name} resumed.", to_row(cli.client.call(resume_webhook(name))))


@verb(webhook, "ls", examples=["millstream webhook ls"])
def list_webhooks(cli: Terminal, prefix: Prefix = "") -> None:
    """List webhooks and their health."""
    from millstream_client.core.api.webhooks import list_webhooks

    def list_page(cursor: str) -> Any:
        return list_webhooks.list_webhooks(prefix=prefix, cursor=cursor)

    cli.out.rows(_pages(cli, list_page), WEBHOOKS)


def _pages(cli: Terminal, list_page: Any) -> Iterator[Row]:
    from millstream_client.sync.pages import all_pages

    return map(to_row, all_pages(cli.client.transport, list_page))


@verb(webhook, "show", examples=["millstream webhook show billing"])
def show(cli: Terminal, name: Name) -> None:
    """Show the configuration and health of a webhook."""
    cli.out.show(_get(cli, name), health=None)


def _get(cli: Terminal, name: str) -> Row:
    from millstream_client.core.api.webhooks.get_webhook import get_webhook

    return to_row(cli.client.call(get_webhook(name)))


@verb(
    webhook,
    "deliveries",
    examples=[
        "millstream webhook deliveries billing",
        "millstream webhook deliveries billing --status failed -o ndjson",
    ],
)
def deliveries(
    cli: Terminal,
    name: Name,
    status: Annotated[
        DeliveryStatusOption | None,
        typer.Option("--status", help="Only deliveries with this status."),
    ] = None,
    limit: Limit = 50,
) -> None:
    """List deliveries, newest first."""
    from millstream_client.core.api.webhooks.list_deliveries import list_deliveries
    from millstream_client.core.models.delivery_status import DeliveryStatus
    from millstream_client.core.types import UNSET

    status_filter = DeliveryStatus(status) if status else UNSET

    def list_page(cursor: str) -> Any:
        return list_deliveries(name, status=status_filter, cursor=cursor)

    cli.out.rows(islice(_pages(cli, list_page), limit), DELIVERIES)


@verb(webhook, "resend")
def resend(cli: Terminal, name: Name, delivery: Delivery) -> None:
    """Resend a delivery now. Fails if the receiver does not accept it."""
    from millstream_client.core.api.webhooks.resend_delivery import resend_delivery

    _attempt(cli, name, to_row(cli.client.call(resend_delivery(name, delivery))))


@verb(webhook, "test")
def test(cli: Terminal, name: Name) -> None:
    """Send a test event now. Fails if the receiver does not accept it."""
    from millstream_client.core.api.webhooks import test_webhook

    _attempt(cli, name, to_row(cli.client.call(test_webhook.test_webhook(name))))


def _attempt(cli: Terminal, name: str, attempt: Row) -> None:
    if attempt["outcome"] != "delivered":
        answer = attempt["status"] or attempt["error"] or "no response"
        raise CliError(f"webhook {name} was not delivered: {attempt['outcome']} ({answer})")
    cli.out.done(f"Delivered webhook {name}: {attempt['status']}.", attempt)


@verb(webhook, "rm", examples=["millstream webhook rm billing ledger --yes"])
def remove(
    cli: Terminal,
    names: Annotated[list[str], typer.Argument(help="Webhooks.")],
    yes: Yes = False,
) -> None:
    """Delete webhooks and their logs. Messages in the source are kept."""
    from millstream_client.core.api.webhooks.delete_webhook import delete_webhook

    for name in names:
        source = _get(cli, name)["source"]
        confirm(cli, f"Webhook {name} of {source} will be deleted.", name, yes=yes)
        cli.client.call(delete_webhook(name))
        cli.out.done(f"Deleted webhook {name}.", {"name": name, "deleted": True})
