"""Command tree of `millstream`: the verbs of a noun are loaded when they are used.

`--help` and completion of the first word load none of them.
"""

from functools import cached_property
from importlib import import_module

import typer
from typer._click import Command
from typer.core import TyperGroup

from api.cli.commands.backups import backups
from api.cli.commands.bench import bench
from api.cli.commands.documents import documents
from api.cli.commands.processes import processes
from api.cli.shell.terminal import CONTEXT, noun
from api.nouns import NOUNS, NounDeclaration


class NounGroup(TyperGroup):
    """Verbs of a noun, loaded when they are used."""

    def __init__(self, declared: NounDeclaration) -> None:
        super().__init__(
            name=declared.name,
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


def command_tree() -> TyperGroup:
    """Return the whole command line."""
    app = typer.Typer(
        help="Millstream: queues and streams over HTTP.",
        no_args_is_help=True,
        rich_markup_mode=None,
        context_settings=CONTEXT,
    )

    @app.callback()
    def options(
        version: bool = typer.Option(
            False, "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ) -> None:
        pass

    app.add_typer(processes)
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    for declared in NOUNS:
        if declared.commands:
            root.add_command(NounGroup(declared))
    for group in (bench, backups, documents):
        root.commands.update(typer.main.get_group(group).commands)
    return root
