"""`millstream source`: sources that receive webhooks of other services."""

from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli.io.stdin import read_text_file
from api.cli.shell.definitions import Definition, delete_verb, pause_verbs, put_verbs
from api.cli.shell.operations import JsonBody
from api.cli.shell.options import Prefix, Settings, duration, fields, option
from api.cli.shell.output import Column, Row, table
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
Overlap = Annotated[float, duration("--overlap", help="How long the previous path stays valid.")]
Names = Annotated[list[str], typer.Argument(help="Sources.")]


def _target(text: str) -> dict[str, str]:
    kind, colon, name = text.partition(":")
    if not (colon and name) or kind not in ("queue", "stream"):
        raise typer.BadParameter("use queue:NAME or stream:NAME", param_hint="into")
    return {kind: name}


def _secrets(path: Path | None) -> list[str] | None:
    """Read the secrets of a file, one a line; `-` is standard input."""
    if path is None:
        return None
    lines = read_text_file(path, "secrets").splitlines()
    return [line.strip() for line in lines if line.strip()]


def _configuration(
    provider: Annotated[
        str,
        typer.Argument(help="standard_webhooks, stripe, github, slack or hmac."),
    ],
    into: Annotated[str, typer.Argument(help="queue:NAME or stream:NAME.")],
    secret_file: Annotated[
        Path | None,
        option(
            "--secret-file",
            "File with the provider's secret, or two during a rotation, one a line; - reads standard input.",
            "FILE",
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        option("--keep-header", "Request header to store with each event; repeat.", "HEADER"),
    ] = None,
    key: Annotated[
        str | None,
        option("--key", "JSON Pointer into the body: record key or message group.", "POINTER"),
    ] = None,
    tolerance: Annotated[
        float | None, duration("--tolerance", help="Maximum age of a signature.")
    ] = None,
    signature_header: Annotated[
        str | None, option("--signature-header", "Header with the signature, for hmac.", "HEADER")
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


def _path_note(stored: Row) -> str:
    """Return a sentence with the path that the provider posts to."""
    return f" Path: {stored['path']}" if stored.get("path") else ""


SOURCE = Definition(source, "Source", Name, "sources.{}_source", _configuration, _path_note)

put_verbs(
    SOURCE,
    create=[
        "millstream source create github github queue:orders --secret-file github.secret --keep-header X-GitHub-Event",
        "echo whsec_8fKQ2rGq | millstream source create stripe stripe queue:orders --secret-file - --key /data/object/customer",
    ],
    apply=["millstream source apply github github queue:orders --tolerance 10m --dry-run"],
)


@verb(source, "ls", examples=["millstream source ls"])
def list_sources(cli: Terminal, prefix: Prefix = "") -> None:
    """List sources."""
    cli.out.rows(cli.pages("sources.list_sources", prefix=prefix), SOURCES)


@verb(source, "show", examples=["millstream source show github"])
def show(cli: Terminal, name: Name) -> None:
    """Show the settings and counters of a source."""

    definition = cli.call("sources.get_source", name)
    cli.out.show({**definition, "stats": cli.call("sources.get_source_stats", name)})


@verb(source, "url", examples=["millstream source url github"])
def url(cli: Terminal, name: Name) -> None:
    """Show the path that the provider posts to. It is a credential."""

    shown = cli.call("sources.get_source_url", name)
    cli.out.done(str(shown["path"]), shown)


@verb(source, "rotate-url", examples=["millstream source rotate-url github --overlap 1h"])
def rotate_url(cli: Terminal, name: Name, overlap: Overlap = 86_400.0) -> None:
    """Replace the path that the provider posts to."""
    body = JsonBody(overlap_seconds=overlap)
    shown = cli.call("sources.rotate_source_url", name, body=body)
    cli.out.done(f"New path: {shown['path']}", shown)


@verb(source, "test", examples=["millstream source test github"])
def test(cli: Terminal, name: Name) -> None:
    """Send a test event to the target.

    It is signed as the provider does, and passes through the source.
    """

    event = cli.call("sources.test_source", name)
    cli.out.done(f"Accepted test event {event['id']}.", event)


@verb(source, "failures", examples=["millstream source failures github"])
def failures(cli: Terminal, name: Name) -> None:
    """List rejected requests, newest first."""

    listed = cli.call("sources.list_source_failures", name)
    cli.out.rows(iter(listed["items"]), FAILURES)


pause_verbs(
    SOURCE,
    pause="Refuse events with 503. Providers send them again when the source is resumed.",
    resume="Resume a paused source.",
    example="github",
)


@delete_verb(SOURCE, Names, "millstream source rm github --yes")
def remove(cli: Terminal, name: str) -> str:
    """Delete sources and their waiting events.

    These events have not reached their target.
    """
    waiting = cli.call("sources.get_source_stats", name)["waiting"]
    return f"Source {name} with {waiting} waiting events will be deleted."
