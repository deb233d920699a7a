"""Confirmation of irreversible actions."""

import typer

from api.cli.errors import CliError, ExitCode
from api.cli.shell.terminal import Terminal


def confirm(cli: Terminal, warning: str, name: str, *, yes: bool) -> None:
    """Show a warning and require the name to be typed. Raises CliError without a terminal."""
    if yes:
        return
    if not cli.is_for_a_person:
        raise CliError(f"{warning} Pass --yes to confirm.", ExitCode.USAGE)
    typer.echo(warning, err=True)
    typed = typer.prompt(f"Type {name} to confirm", default="", show_default=False, err=True)
    if typed != name:
        raise CliError("the name does not match; nothing was done")
