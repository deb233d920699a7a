"""Options of all commands that call a service, which can stand before or after the verb."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from inspect import Parameter, Signature
from typing import Annotated, Any

import typer

from api.config.durations import parse_duration


class OutputFormat(StrEnum):
    """Values of -o."""

    TABLE = "table"
    JSON = "json"
    NDJSON = "ndjson"


def parsed_by(parse: Callable[[str], Any]) -> Callable[[Any], Any]:
    """Wrap a parser of an option's value: its ValueError becomes a usage error."""

    def convert(text: Any) -> Any:
        if not isinstance(text, str):  # a default
            return text
        try:
            return parse(text)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from None

    return convert


CONNECTION: dict[str, tuple[Any, Any]] = {
    "url": (
        Annotated[
            str | None,
            typer.Option("--url", metavar="URL", help="Address of the service (MILLSTREAM_URL)."),
        ],
        None,
    ),
    "api_key": (
        Annotated[
            str | None,
            typer.Option("--api-key", metavar="KEY", help="API key (MILLSTREAM_API_KEY)."),
        ],
        None,
    ),
    "ca_file": (
        Annotated[
            str | None,
            typer.Option(
                "--ca-file",
                metavar="FILE",
                help="PEM file of the CA that signed the service's certificate.",
            ),
        ],
        None,
    ),
    "profile": (
        Annotated[
            str | None,
            typer.Option("--profile", metavar="NAME", help="Profile to use; see `profile ls`."),
        ],
        None,
    ),
    "retry": (
        Annotated[
            Any,
            typer.Option(
                "--retry",
                parser=parsed_by(parse_duration),
                metavar="DURATION",
                help="Time to keep retrying while the service is unreachable.",
            ),
        ],
        None,
    ),
}
OUTPUT: dict[str, tuple[Any, Any]] = {
    "output": (
        Annotated[OutputFormat, typer.Option("--output", "-o", help="Output format.")],
        OutputFormat.TABLE,
    ),
    "quiet": (
        Annotated[bool, typer.Option("--quiet", "-q", help="Print names only, or nothing.")],
        False,
    ),
}
COMMON = OUTPUT | CONNECTION
"""Annotation and default of each option."""


def common_parameters() -> list[Parameter]:
    """Return the common options as parameters of a function."""
    return [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in COMMON.items()
    ]


def set_parameters(function: Any, parameters: Sequence[Parameter]) -> None:
    """Declare the parameters of a function that takes any, for Typer to read."""
    function.__signature__ = Signature(parameters)
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
