"""Commands and groups: aliases of verbs, and common options before or after the verb."""

from collections.abc import Mapping, Sequence
from typing import Any

from typer._click import Command, Context
from typer._click.core import ParameterSource
from typer.core import TyperCommand, TyperGroup

from api.cli.grammar.common_options import COMMON
from api.cli.grammar.help import argument_usage, sections, summary, write_sections

ALIASES: Mapping[str, Sequence[str]] = {
    "list": ("ls",),
    "get": ("show",),
    "describe": ("show",),
    "delete": ("rm", "revoke", "cancel"),
    "remove": ("rm", "revoke"),
    "update": ("change",),
    "new": ("create", "add"),
    "add": ("create",),
}
"""Accepted names of a verb, by what other tools call it; the first that a group has."""


class LeafCommand(TyperCommand):
    """Command without commands below it."""

    def collect_usage_pieces(self, ctx: Context) -> list[str]:
        arguments = [each for each in self.get_params(ctx) if each.param_type_name == "argument"]
        return [*map(argument_usage, arguments), "[OPTIONS]"]

    def get_short_help_str(self, limit: int = 0) -> str:
        return summary(self.help or "")

    def format_options(self, ctx: Context, formatter: Any) -> None:
        write_sections(formatter, sections(self.get_params(ctx)))


class CommandGroup(TyperGroup):
    """Group of commands that passes its common options on to them.

    `headings`: section of each command in the help; without it, the commands are in one section.
    """

    headings: Mapping[str, str] = {}

    def get_short_help_str(self, limit: int = 0) -> str:
        return summary(self.help or "")

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        names = (cmd_name, *ALIASES.get(cmd_name, ()))
        return next((self.commands[name] for name in names if name in self.commands), None)

    def resolve_command(
        self, ctx: Context, args: list[str]
    ) -> tuple[str | None, Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            name = command.name
            ctx.default_map = {str(name): _passed_on(ctx, command)}
        return name, command, rest

    def help_params(self, ctx: Context) -> list[Any]:
        """Return the parameters that the help shows; a group below another hides common ones."""
        params = self.get_params(ctx)
        return [each for each in params if ctx.parent is None or each.name not in COMMON]

    def format_options(self, ctx: Context, formatter: Any) -> None:
        write_sections(formatter, self._commands_by_heading())
        write_sections(formatter, sections(self.help_params(ctx)))

    def _commands_by_heading(self) -> list[tuple[str, list[tuple[str, str]]]]:
        visible = {name: each for name, each in self.commands.items() if not each.hidden}
        parts: dict[str, list[tuple[str, str]]] = {
            heading: [] for heading in self.headings.values()
        }
        for name, command in visible.items():
            heading = self.headings.get(name, "Commands")
            parts.setdefault(heading, []).append((name, command.get_short_help_str()))
        return [(heading, entries) for heading, entries in parts.items() if entries]


def _passed_on(ctx: Context, command: Command) -> dict[str, Any]:
    """Return the common options that were given so far, as defaults of the command below.

    Fails if it does not have them.
    """
    given = {
        name: ctx.params[name]
        for name in COMMON
        if ctx.get_parameter_source(name) not in (None, ParameterSource.DEFAULT)
    }
    accepted = {parameter.name for parameter in command.params}
    refused = [name for name in given if name not in accepted]
    if refused and not ctx.resilient_parsing:
        option = f"--{refused[0].replace('_', '-')}"
        ctx.fail(f"'{command.name}' has no option {option}.")
    return given
