"""Options and arguments that several verbs have."""

import json
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from api.cli.shell.completion import group_names, queue_names, stream_names
from api.cli.shell.parsing import parse_duration, parse_place, parse_time
from api.cli.shell.terminal import parsed_by
from storage.domain.clock import SystemClock


def now() -> datetime:
    """This machine's time."""
    return datetime.fromtimestamp(SystemClock().now_ms() / 1000, UTC)


def duration(*names: str, help: str = "") -> Any:
    """An option that takes a duration, in seconds where it arrives."""
    return typer.Option(*names, parser=parsed_by(parse_duration), metavar="DURATION", help=help)


def place(*names: str, help: str = "") -> Any:
    """An option that takes a place in a stream."""
    return typer.Option(
        *names, parser=parsed_by(lambda text: parse_place(text, now())), metavar="PLACE", help=help
    )


def moment(*names: str, help: str = "") -> Any:
    """An option that takes a time."""
    return typer.Option(
        *names, parser=parsed_by(lambda text: parse_time(text, now())), metavar="TIME", help=help
    )


def parse_setting(text: str) -> tuple[str, Any]:
    """name=value; the value is JSON where it is any, and text otherwise. Raises ValueError."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ValueError(f"{text!r} is no setting: say name=value")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def parse_pair(text: str) -> tuple[str, str]:
    """name=value, both text. Raises ValueError."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ValueError(f"{text!r} is no header: say name=value")
    return name, value


def fields(settings: list[Any] | None, **named: Any) -> dict[str, Any]:
    """What was said of a configuration: --set name=value, over the options that were given."""
    said = {name: value for name, value in named.items() if value is not None}
    return said | dict(settings or [])


QueueName = Annotated[str, typer.Argument(autocompletion=queue_names, help="The queue.")]
QueueNames = Annotated[list[str], typer.Argument(autocompletion=queue_names, help="The queues.")]
StreamName = Annotated[str, typer.Argument(autocompletion=stream_names, help="The stream.")]
StreamNames = Annotated[list[str], typer.Argument(autocompletion=stream_names, help="The streams.")]
GroupName = Annotated[str, typer.Argument(autocompletion=group_names, help="The group.")]
GroupNames = Annotated[list[str], typer.Argument(autocompletion=group_names, help="The groups.")]
Prefix = Annotated[str, typer.Option("--prefix", help="Only names that begin with this.")]
Most = Annotated[int | None, typer.Option("-n", "--limit", min=1, help="How many at most.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
OnlyNew = Annotated[bool, typer.Option("--new", help="Fail if it exists already.")]
Settings = Annotated[
    list[Any] | None,
    typer.Option(
        "--set",
        parser=parsed_by(parse_setting),
        metavar="NAME=VALUE",
        help="A field of its configuration, as the REST API names it; repeat for more.",
    ),
]
Headers = Annotated[
    list[Any] | None,
    typer.Option(
        "--header",
        parser=parsed_by(parse_pair),
        metavar="NAME=VALUE",
        help="A header; repeat for more.",
    ),
]
ContentType = Annotated[str, typer.Option("--content-type", help="The content type of the data.")]
