"""Command tree of `millstream`: the verbs of a noun are loaded when they are used.

`--help` and completion of the first word load none of them.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from importlib import import_module
from inspect import Parameter
from typing import Annotated, Any

import typer
from typer._click import Command, Context

from api.cli.commands.backups import backups
from api.cli.commands.bench import bench
from api.cli.commands.documents import documents
from api.cli.commands.login import access
from api.cli.commands.manifests import manifests
from api.cli.commands.processes import processes
from api.cli.commands.top import activity
from api.cli.grammar.common_options import COMMON, common_parameters, set_parameters
from api.cli.grammar.groups import CommandGroup
from api.cli.shell.terminal import CONTEXT, noun
from api.nouns import NOUNS, NounDeclaration

HEADINGS = {
    "Definitions": ("apply", "diff", "export"),
    "Operation": ("top", "doctor", "bench", "backup", "restore"),
    "Processes": ("up", "serve", "sweep", "deliver", "background", "worker", "migrate"),
    "This command line": ("login", "ui", "version", "openapi", "asyncapi"),
}
"""Commands without a noun by section of `millstream --help`."""


class RootGroup(CommandGroup):
    """The whole command line."""

    headings = {declared.name: declared.heading for declared in NOUNS if declared.commands} | {
        name: heading for heading, names in HEADINGS.items() for name in names
    }

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """Return the command of a name, or of the plural of a noun."""
        command = super().get_command(ctx, cmd_name)
        singular = [declared.name for declared in NOUNS if declared.plural == cmd_name]
        return command or next(map(self.commands.get, singular), None)


class NounGroup(CommandGroup):
    """Verbs of a noun, loaded when they are used."""

    def __init__(self, declared: NounDeclaration, options: Sequence[Any]) -> None:
        super().__init__(
            name=declared.name,
            params=list(options),
            help=declared.help,
            no_args_is_help=True,
            rich_markup_mode=None,
            context_settings=CONTEXT,
        )
        self._groups = declared.commands
        del self.commands

    @cached_property
    def commands(self) -> dict[str, Command]:  # type: ignore[override]
        """Commands by verb."""
        whole = noun()
        for group in self._groups:
            module, _, name = group.partition(":")
            whole.add_typer(getattr(import_module(f"api.cli.commands.{module}"), name))
        return dict(typer.main.get_group(whole).commands)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        from importlib.metadata import version

        typer.echo(version("millstream"))
        raise typer.Exit


def command_tree() -> CommandGroup:
    """Return the whole command line."""
    app = typer.Typer(
        cls=RootGroup,
        help="Millstream: queues and streams over HTTP.",
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings=CONTEXT,
    )

    app.callback()(_options())
    app.add_typer(processes)
    root = typer.main.get_command(app)
    assert isinstance(root, CommandGroup)
    common = [option for option in root.params if option.name in COMMON]
    for declared in NOUNS:
        if declared.commands:
            root.add_command(NounGroup(declared, common))
    for group in (activity, manifests, access, bench, backups, documents):
        root.commands.update(typer.main.get_group(group).commands)
    return root


def _options() -> Callable[..., None]:
    """Return a function with the options of the whole command line as its parameters."""

    def options(**_: Any) -> None:
        pass

    option = typer.Option(
        "--version", callback=_print_version, is_eager=True, help="Print the version."
    )
    version = Parameter(
        "version", Parameter.KEYWORD_ONLY, default=False, annotation=Annotated[bool, option]
    )
    set_parameters(options, [version, *common_parameters()])
    return options
