"""Command tree of `millstream`: the verbs of a noun are loaded when they are used.

`--help` and completion of the first word load none of them.
"""

from functools import cached_property
from importlib import import_module
from typing import NamedTuple

import typer
from typer._click import Command
from typer.core import TyperGroup

from api.cli.commands.backups import backups
from api.cli.commands.bench import bench
from api.cli.commands.documents import documents
from api.cli.commands.processes import processes
from api.cli.shell.terminal import CONTEXT, noun


class NounEntry(NamedTuple):
    """Help of a noun, and its groups of verbs as `module:name` in `api.cli.commands`."""

    help: str
    groups: tuple[str, ...]


NOUNS = {
    "queue": NounEntry("Queues.", ("queue:queue", "messages:messages", "dead_letters:letters")),
    "stream": NounEntry("Streams.", ("stream:stream", "records:records")),
    "group": NounEntry("Consumer groups.", ("group:group",)),
    "replay": NounEntry("Replays of stream records.", ("replay:replay",)),
    "archive": NounEntry("Archived streams (Parquet files).", ("archive:archive",)),
    "webhook": NounEntry("Webhooks that deliver queues and groups to a URL.", ("webhook:webhook",)),
    "source": NounEntry("Sources that receive webhooks of other services.", ("source:source",)),
    "job": NounEntry("Spark jobs.", ("job:job",)),
    "socket": NounEntry("WebSocket connections.", ("socket:socket",)),
    "process": NounEntry("Processes of the deployment.", ("socket:process",)),
    "namespace": NounEntry("Namespaces (tenants) and their quotas.", ("namespace:namespace",)),
    "key": NounEntry("API keys and permissions.", ("key:key",)),
    "audit": NounEntry("Audit log of administrative calls.", ("audit:audit",)),
    "config": NounEntry("Effective settings and their sources.", ("config:config",)),
}


class NounGroup(TyperGroup):
    """Verbs of a noun, loaded when they are used."""

    def __init__(self, name: str, noun: NounEntry) -> None:
        super().__init__(
            name=name,
            help=noun.help,
            no_args_is_help=True,
            rich_markup_mode=None,
            context_settings=CONTEXT,
        )
        self._groups = noun.groups
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
    for name, described in NOUNS.items():
        root.add_command(NounGroup(name, described))
    for group in (bench, backups, documents):
        root.commands.update(typer.main.get_group(group).commands)
    return root
