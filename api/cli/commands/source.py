"""`millstream source`: sources that receive webhooks of other services."""

from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli.errors import CliError
from api.cli.shell.definitions import Definition, put_verbs
from api.cli.shell.options import Prefix, Settings, Yes, duration, fields
from api.cli.shell.output import Column, Row, table, to_row
from api.cli.shell.prompts import confirm
from api.cli.shell.terminal import Terminal, noun, verb

source = noun()

SOURCES = table(
    "name",
    Column("webhook.provider", "provider"),
    Column("into.queue", "queue"),
    Column("into.stream", "stream"),
    "paused",
    "changed_at",
)
FAILURES = table("at", "reason", "detail", "body_bytes")

Name = Annotated[str, typer.Argument(help="Source.")]


def _target(text: str) -> dict[str, str]:
    kind, colon, name = text.partition(":")
    if not (colon and name) or kind not in ("queue", "stream"):
        raise typer.BadParameter("use queue:NAME or stream:NAME", param_hint="into")
    return {kind: name}


def _secrets(path: Path | None) -> list[str] | None:
    """Read the secrets of a file, one a line; `-` is standard input."""
    if path is None:
        return None
    try:
        text = typer.get_text_stream("stdin").read() if str(path) == "-" else path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(f"cannot read the secrets from {path}: {error}") from None
    return [line.strip() for line in text.splitlines() if line.strip()]


def _configuration(
    provider: Annotated[
        str,
        typer.Argument(help="standard_webhooks, stripe, github, slack or hmac."),
    ],
    into: Annotated[str, typer.Argument(help="queue:NAME or stream:NAME.")],
    secret_file: Annotated[
        Path | None,
        typer.Option(
            "--secret-file",
            help="File with the provider's secret, or two during a rotation, one a line; - reads standard input.",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option("--keep-header", help="Request header to store with each event; repeat."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", help="JSON Pointer into the body: record key or message group."),
    ] = None,
    tolerance: Annotated[
        float | None, duration("--tolerance", help="Maximum age of a signature.")
    ] = None,
    signature_header: Annotated[
        str | None, typer.Option("--signature-header", help="Header with the signature, for hmac.")
    ] = None,
    set_: Settings = None,
) -> dict[str, Any]:
    webhook = fields(
        None,
        provider=provider,
        secrets=_secrets(secret_file),
        headers=keep,
        tolerance_seconds=tolerance,
        signature_header=signature_header,
    )
    return _merged({"webhook": webhook, "into": fields(None, **_target(into), key=key)}, set_)


def _merged(body: dict[str, Any], settings: list[Any] | None) -> dict[str, Any]:
    """Apply --set; a name with a dot, such as webhook.prefix, is a field of that object."""
    for name, value in settings or []:
        group, dot, member = name.partition(".")
        if dot:
            body.setdefault(group, {})[member] = value
        else:
            body[name] = value
    return body


def _put(name: str, **conditions: Any) -> Any:
    from millstream_client.core.api.sources.put_source import put_source
    from millstream_client.core.models.source_config import SourceConfig
    from millstream_client.core.models.source_into import SourceInto
    from millstream_client.core.models.source_webhook import SourceWebhook
    from millstream_client.core.models.webhook_provider import WebhookProvider

    body = SourceConfig(webhook=SourceWebhook(WebhookProvider.HMAC), into=SourceInto())
    return put_source(name, body=body, **conditions)


def _path_note(stored: Row) -> str:
    """Return a sentence with the path that the provider posts to."""
    return f" Path: {stored['path']}" if stored.get("path") else ""


put_verbs(
    source,
    Definition("Source", Name, _put, _configuration, _path_note),
    create=[
        "millstream source create github github queue:orders --secret-file github.secret --keep-header X-GitHub-Event",
        "echo whsec_8fKQ2rGq | millstream source create stripe stripe queue:orders --secret-file - --key /data/object/customer",
    ],
    apply=["millstream source apply github github queue:orders --tolerance 10m --dry-run"],
)


@verb(source, "ls", examples=["millstream source ls"])
def list_sources(cli: Terminal, prefix: Prefix = "") -> None:
    """List sources."""
    from millstream_client.core.api.sources import list_sources
    from millstream_client.sync.pages import all_pages

    def list_page(cursor: str) -> Any:
        return list_sources.list_sources(prefix=prefix, cursor=cursor)

    cli.out.rows(map(to_row, all_pages(cli.client.transport, list_page)), SOURCES)


@verb(source, "show", examples=["millstream source show github"])
def show(cli: Terminal, name: Name) -> None:
    """Show the configuration of a source, and its counters."""
    from millstream_client.core.api.sources.get_source import get_source
    from millstream_client.core.api.sources.get_source_stats import get_source_stats

    definition = to_row(cli.client.call(get_source(name)))
    cli.out.show({**definition, "stats": to_row(cli.client.call(get_source_stats(name)))})


@verb(source, "url", examples=["millstream source url github"])
def url(cli: Terminal, name: Name) -> None:
    """Show the path that the provider posts to. It is a credential."""
    from millstream_client.core.api.sources.get_source_url import get_source_url

    shown = to_row(cli.client.call(get_source_url(name)))
    cli.out.done(str(shown["path"]), shown)


@verb(source, "rotate-url", examples=["millstream source rotate-url github --overlap 1h"])
def rotate_url(
    cli: Terminal,
    name: Name,
    overlap: Annotated[
        float, duration("--overlap", help="How long the previous path stays valid.")
    ] = 86_400.0,
) -> None:
    """Replace the path that the provider posts to."""
    from millstream_client.core.api.sources.rotate_source_url import rotate_source_url
    from millstream_client.core.models.rotate_token_in import RotateTokenIn

    body = RotateTokenIn(overlap_seconds=overlap)
    shown = to_row(cli.client.call(rotate_source_url(name, body=body)))
    cli.out.done(f"New path: {shown['path']}", shown)


@verb(source, "test", examples=["millstream source test github"])
def test(cli: Terminal, name: Name) -> None:
    """Send a test event, signed as the provider does, through the source to its target."""
    from millstream_client.core.api.sources import test_source

    event = to_row(cli.client.call(test_source.test_source(name)))
    cli.out.done(f"Accepted test event {event['id']}.", event)


@verb(source, "failures", examples=["millstream source failures github"])
def failures(cli: Terminal, name: Name) -> None:
    """List the last rejected requests, newest first."""
    from millstream_client.core.api.sources.list_source_failures import list_source_failures

    listed = to_row(cli.client.call(list_source_failures(name)))
    cli.out.rows(iter(listed["items"]), FAILURES)


@verb(source, "pause", examples=["millstream source pause github"])
def pause(cli: Terminal, name: Name) -> None:
    """Refuse events with 503 until the source is resumed; providers send them again."""
    from millstream_client.core.api.sources.pause_source import pause_source

    cli.out.done(f"Source {name} paused.", to_row(cli.client.call(pause_source(name))))


@verb(source, "resume", examples=["millstream source resume github"])
def resume(cli: Terminal, name: Name) -> None:
    """Resume a paused source."""
    from millstream_client.core.api.sources.resume_source import resume_source

    cli.out.done(f"Source {name} resumed.", to_row(cli.client.call(resume_source(name))))


@verb(source, "rm", examples=["millstream source rm github --yes"])
def remove(
    cli: Terminal,
    names: Annotated[list[str], typer.Argument(help="Sources.")],
    yes: Yes = False,
) -> None:
    """Delete sources, and the events that have not reached their target."""
    from millstream_client.core.api.sources.delete_source import delete_source
    from millstream_client.core.api.sources.get_source_stats import get_source_stats

    for name in names:
        waiting = to_row(cli.client.call(get_source_stats(name)))["waiting"]
        confirm(cli, f"Source {name} with {waiting} waiting events will be deleted.", name, yes=yes)
        cli.client.call(delete_source(name))
        cli.out.done(f"Deleted source {name}.", {"name": name, "deleted": True})
