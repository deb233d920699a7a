"""Context of every command: a client of the service, an output, and the common options.

queue = noun()

@verb(queue, "ls", examples=["millstream queue ls"])
def list_queues(cli: Terminal, prefix: Prefix = "") -> None:
    \"\"\"List the queues.\"\"\"
    cli.out.rows(map(to_row, cli.client.queues(prefix)), QUEUES)
"""

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial, wraps
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec

import typer

from api.cli.config.process_settings import environment
from api.cli.config.profiles import ServiceTarget, find_target
from api.cli.errors import PipeClosed
from api.cli.shell.interrupts import ended_by_sigterm
from api.cli.shell.operations import operation
from api.cli.shell.output import Output, OutputFormat, Row, to_row
from api.cli.shell.parsers import parse_duration
from api.cli.shell.sdk_warnings import listen

if TYPE_CHECKING:
    from millstream_client import Millstream

P = ParamSpec("P")

LONG_S = 60.0  # how long a bulk command retries by default
FOR_EVER_S = float("inf")
CONTEXT = {"help_option_names": ["-h", "--help"]}


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


Duration = Annotated[float, typer.Option(parser=parsed_by(parse_duration), metavar="DURATION")]

COMMON: dict[str, tuple[Any, Any]] = {
    "url": (
        Annotated[
            str | None,
            typer.Option("--url", help="Address of the service, such as http://127.0.0.1:8080."),
        ],
        None,
    ),
    "api_key": (
        Annotated[str | None, typer.Option("--api-key", help="API key.")],
        None,
    ),
    "ca_file": (
        Annotated[
            str | None,
            typer.Option(
                "--ca-file",
                help="PEM file of the CA that signed the service's certificate.",
                metavar="FILE",
            ),
        ],
        None,
    ),
    "profile": (
        Annotated[str | None, typer.Option("--profile", help="Profile of the configuration file.")],
        None,
    ),
    "output": (
        Annotated[OutputFormat, typer.Option("--output", "-o", help="Output format.")],
        OutputFormat.TABLE,
    ),
    "quiet": (
        Annotated[bool, typer.Option("--quiet", "-q", help="Print names only, or nothing.")],
        False,
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
"""Options of all commands: annotation and default."""


class Terminal:
    """Context of one command.

    `client` fails immediately when the service is unreachable, unless --retry is given.
    """

    def __init__(self, target: ServiceTarget, out: Output, retry_s: float | None = None) -> None:
        self.target = target
        self.out = out
        self._retry_s = retry_s
        self._opened: list[Millstream] = []

    @cached_property
    def client(self) -> "Millstream":
        """Client for short calls."""
        return self.connect(0.0)

    def call(self, name: str, /, *path: str, **parameters: Any) -> Row:
        """Make a call of the REST API, such as `queues.get_queue`, and return its result."""
        return to_row(self.client.call(operation(name, *path, **parameters)))

    def pages(self, name: str, /, *path: str, **parameters: Any) -> Iterator[Row]:
        """Yield the items of a list, such as `keys.list_keys`, page by page."""
        from millstream_client.sync.pages import all_pages

        list_page = partial(operation, name, *path, **parameters)
        items = all_pages(self.client.transport, lambda cursor: list_page(cursor=cursor))
        return map(to_row, items)

    def connect(self, retry_s: float) -> "Millstream":
        """Return a client that retries for `retry_s`, unless --retry is given; closed at the end."""
        from millstream_client import Millstream, Retries

        seconds = retry_s if self._retry_s is None else self._retry_s
        client = Millstream(
            self.target.url.value,
            self.target.api_key.value,
            retries=Retries(seconds=seconds, first_contact_s=seconds),
            ca_file=self.target.ca_file.value,
        )
        self._opened.append(client)
        return client

    @property
    def is_for_a_person(self) -> bool:
        """True if a person can be prompted."""
        return sys.stdin.isatty() and sys.stderr.isatty()

    @property
    def shows_progress(self) -> bool:
        """True if progress is to be shown on standard error."""
        return sys.stderr.isatty() and not self.out.quiet

    def print_notice(self, line: str) -> None:
        """Print a notice on standard error."""
        if not self.out.quiet:
            typer.echo(line, err=True)

    def close(self) -> None:
        """Close the clients that were opened."""
        for client in self._opened:
            client.close()


@contextmanager
def _terminal(
    url: str | None,
    *,
    api_key: str | None,
    ca_file: str | None,
    profile: str | None,
    output: OutputFormat,
    quiet: bool,
    retry: float | None,
) -> Iterator[Terminal]:
    target = find_target(environment(), url=url, api_key=api_key, ca_file=ca_file, profile=profile)
    cli = Terminal(target, Output(output, quiet=quiet), retry)
    stop_listening = listen(cli.print_notice)
    try:
        with ended_by_sigterm(), _troubles():
            yield cli
    finally:
        cli.close()
        stop_listening()


@contextmanager
def _troubles() -> Iterator[None]:
    from api.cli.shell.error_messages import cli_error_from
    from millstream_client.errors import MillstreamError

    try:
        yield
    except MillstreamError as error:
        raise cli_error_from(error) from None
    except BrokenPipeError:
        raise PipeClosed from None


# ── Composing ──


def noun() -> typer.Typer:
    """Create a command group without commands; the command tree has its help."""
    return typer.Typer(
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings=CONTEXT,
    )


def verb(
    app: typer.Typer, name: str, *, examples: Sequence[str] = ()
) -> Callable[[Callable[Concatenate[Terminal, P], None]], Callable[Concatenate[Terminal, P], None]]:
    """Register a function as a command of a group.

    Its examples are shown below its help, and the tests run them.
    """

    def register(
        function: Callable[Concatenate[Terminal, P], None],
    ) -> Callable[Concatenate[Terminal, P], None]:
        @wraps(function)
        def command(**options: Any) -> None:
            common = {option: options.pop(option) for option in COMMON}
            with _terminal(**common) as cli:
                function(cli, **options)  # type: ignore[call-arg]

        _declare(command, function)
        command.examples = tuple(examples)  # type: ignore[attr-defined]
        app.command(name, help=help_of(function, examples), context_settings=CONTEXT)(command)
        return function

    return register


def help_of(function: Callable[..., Any], examples: Sequence[str]) -> str:
    """Return a docstring with examples below, which keep their lines."""
    text = inspect.getdoc(function) or ""
    lines = "\n".join(f"  {example}" for example in examples)
    return f"{text}\n\n\b\nExamples:\n{lines}" if examples else text


def _declare(command: Any, function: Callable[..., Any]) -> None:
    """Give the command its function's parameters, except the Terminal, and the common options."""
    own = list(inspect.signature(function).parameters.values())[1:]
    common = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )
        for name, (annotation, default) in COMMON.items()
    ]
    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own
    ] + common
    del command.__wrapped__
    command.__signature__ = inspect.Signature(parameters)
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
