"""Context of every command: a client of the service, an output, and the common options.

queue = noun()

@verb(queue, "ls", examples=["millstream queue ls"])
def list_queues(cli: Terminal, prefix: Prefix = "") -> None:
    \"\"\"List the queues.\"\"\"
    cli.out.rows(map(to_row, cli.client.queues(prefix)), QUEUES)
"""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import typer

from api.cli.config.process_settings import environment
from api.cli.config.profiles import ServiceTarget, find_target
from api.cli.errors import PipeClosed
from api.cli.grammar.common_options import COMMON, OutputFormat, common_parameters, set_parameters
from api.cli.grammar.groups import LeafCommand
from api.cli.grammar.help import with_examples
from api.cli.shell.interrupts import ended_by_sigterm
from api.cli.shell.operations import operation
from api.cli.shell.output import Output, Row, to_row
from api.cli.shell.sdk_warnings import listen

if TYPE_CHECKING:
    from millstream_client import Millstream

P = ParamSpec("P")
Function = TypeVar("Function", bound=Callable[..., Any])

LONG_S = 60.0  # how long a bulk command retries by default
FOR_EVER_S = float("inf")
CONTEXT = {"help_option_names": ["-h", "--help"]}


class Terminal:
    """Context of one command.

    `client` fails immediately when the service is unreachable, unless --retry is given. `options`: those of the connection
    that were given.
    """

    def __init__(
        self, options: Mapping[str, str | None], out: Output, retry_s: float | None = None
    ) -> None:
        self.options = {name: value for name, value in options.items() if value is not None}
        self.out = out
        self._retry_s = retry_s
        self._opened: list[Millstream] = []

    @cached_property
    def target(self) -> ServiceTarget:
        """Selected service. Raises CliError."""
        return find_target(environment(), **self.options)

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

    def connect(self, retry_s: float, target: ServiceTarget | None = None) -> "Millstream":
        """Return a client that retries for `retry_s`, unless --retry is given; closed at the end."""
        from millstream_client import Millstream, Retries

        seconds = retry_s if self._retry_s is None else self._retry_s
        service = target or self.target
        client = Millstream(
            service.url.value,
            service.api_key.value,
            retries=Retries(seconds=seconds, first_contact_s=seconds),
            ca_file=service.ca_file.value,
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
    *, output: OutputFormat, quiet: bool, retry: float | None, **options: str | None
) -> Iterator[Terminal]:
    cli = Terminal(options, Output(output, quiet=quiet), retry)
    stop_listening = listen(cli.print_notice)
    try:
        with ended_by_sigterm(), _troubles():
            yield cli
    finally:
        cli.close()
        stop_listening()


@contextmanager
def _troubles() -> Iterator[None]:
    """Convert errors of the SDK, if a command has loaded it."""
    try:
        yield
    except BrokenPipeError:
        raise PipeClosed from None
    except Exception as error:
        errors = sys.modules.get("millstream_client.errors")
        if errors is None or not isinstance(error, errors.MillstreamError):
            raise
        from api.cli.shell.error_messages import cli_error_from

        raise cli_error_from(error) from None


# ── Composing ──


class Commands(typer.Typer):
    """Commands of a noun, or without one; the command tree has their help."""

    def __init__(self) -> None:
        super().__init__(rich_markup_mode=None, context_settings=CONTEXT)

    def command(self, name: str | None = None, **options: Any) -> Callable[[Function], Function]:
        """Register a command."""
        return super().command(name, cls=LeafCommand, context_settings=CONTEXT, **options)


def noun() -> Commands:
    """Create a group of commands without commands."""
    return Commands()


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
        text = with_examples(inspect.getdoc(function) or "", examples)
        app.command(name, help=text)(command)
        return function

    return register


def _declare(command: Any, function: Callable[..., Any]) -> None:
    """Give the command its function's parameters, except the Terminal, and the common options."""
    own = list(inspect.signature(function).parameters.values())[1:]
    keyword = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    del command.__wrapped__
    set_parameters(command, keyword + common_parameters())
