"""Options and arguments that several commands have."""

import json
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from api.cli.grammar.common_options import parsed_by
from api.cli.grammar.parsers import parse_position, parse_time
from api.cli.shell.clock import now
from api.cli.shell.completion import group_names, queue_names, stream_names
from api.config.durations import parse_duration


def option(name: str, help: str, metavar: str | None = None) -> Any:
    """Declare an option with its help."""
    return typer.Option(name, help=help, metavar=metavar)


def duration(*names: str, help: str = "") -> Any:
    """Declare an option for a duration, converted to seconds."""
    return typer.Option(*names, parser=parsed_by(parse_duration), metavar="DURATION", help=help)


def position_option(*names: str, help: str = "") -> Any:
    """Declare an option for a position in a stream."""
    return typer.Option(
        *names,
        parser=parsed_by(lambda text: parse_position(text, now())),
        metavar="POSITION",
        help=help,
    )


def moment(*names: str, help: str = "") -> Any:
    """Declare an option for a time."""
    return typer.Option(
        *names, parser=parsed_by(lambda text: parse_time(text, now())), metavar="TIME", help=help
    )


def _named_values(name: str, parse: Callable[[str], Any], help: str) -> Any:
    return typer.Option(name, parser=parsed_by(parse), metavar="NAME=VALUE", help=help)


def parse_setting(text: str) -> tuple[str, Any]:
    """Parse name=value; a value that is valid JSON is decoded, others are text.

    Raises ValueError.
    """
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ValueError(f"{text!r} is not a setting: use name=value")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def parse_pair(text: str) -> tuple[str, str]:
    """Parse name=value, both text. Raises ValueError."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ValueError(f"{text!r} is not a header: use name=value")
    return name, value


def fields(settings: list[Any] | None, **named: Any) -> dict[str, Any]:
    """Return the given fields of a configuration: --set name=value overrides the options."""
    given = {name: value for name, value in named.items() if value is not None}
    return given | dict(settings or [])


QueueName = Annotated[str, typer.Argument(autocompletion=queue_names, help="Queue.")]
QueueNames = Annotated[list[str], typer.Argument(autocompletion=queue_names, help="Queues.")]
StreamName = Annotated[str, typer.Argument(autocompletion=stream_names, help="Stream.")]
StreamNames = Annotated[list[str], typer.Argument(autocompletion=stream_names, help="Streams.")]
GroupName = Annotated[str, typer.Argument(autocompletion=group_names, help="Group.")]
GroupNames = Annotated[list[str], typer.Argument(autocompletion=group_names, help="Groups.")]
Prefix = Annotated[str, option("--prefix", "Only names with this prefix.", "PREFIX")]
Limit = Annotated[int | None, typer.Option("-n", "--limit", min=1, help="Maximum number.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Settings = Annotated[
    list[Any] | None,
    _named_values(
        "--set", parse_setting, "A configuration field by its REST API name; repeat for more."
    ),
]
Headers = Annotated[
    list[Any] | None,
    _named_values("--header", parse_pair, "Header (name=value); repeat for more."),
]
ContentType = Annotated[str, option("--content-type", "Content type of the data.", "TYPE")]


DataOption = Annotated[Path | None, option("--data", "Data directory.")]
ServerOption = Annotated[
    Literal["bundled", "path"] | None,
    typer.Option(help="Valkey to start: the bundled one, or the one on PATH."),
]


class JobStateOption(StrEnum):
    """Job state."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
