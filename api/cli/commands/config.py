"""`millstream config`: effective settings, their sources and their validation."""

from pathlib import Path
from typing import Annotated

import typer

from api.cli.config.process_settings import environment
from api.cli.config.profiles import CliOverride, config_path
from api.cli.errors import CliError, ExitCode
from api.cli.shell.options import option
from api.cli.shell.output import Row, table
from api.cli.shell.terminal import Terminal, noun, verb

config = noun()

PLAIN = table("name", "value")
WITH_ORIGIN = table("name", "value", "origin")


@verb(
    config, "show", examples=["millstream config show", "millstream config show --origin -o json"]
)
def show(
    cli: Terminal,
    origin: Annotated[bool, option("--origin", "Also show the source of each setting.")] = False,
) -> None:
    """Show the effective settings.

    Those of the service started here, and of the service that commands call. Secrets are not shown.
    """
    from api.cli.config.sources import settings_with_origins

    target = cli.target
    client = {
        "url": target.url,
        "api_key": _redacted(target.api_key),
        "ca_file": target.ca_file,
    }
    rows = [
        _row(name, override, origin)
        for name, override in {**client, **settings_with_origins()}.items()
    ]
    cli.out.rows(rows, WITH_ORIGIN if origin else PLAIN)


def _row(name: str, override: CliOverride, origin: bool) -> Row:
    row = {"name": name, "value": override.value}
    return {**row, "origin": override.origin} if origin else row


def _redacted(secret: CliOverride) -> CliOverride:
    return CliOverride("**********" if secret.value else "", secret.origin)


@verb(config, "check", examples=["millstream config check"])
def check(cli: Terminal) -> None:
    """Find unknown settings and invalid values."""
    from api.cli.config.sources import faults

    problems = faults(Path.cwd())
    for fault in problems:
        typer.echo(fault, err=True)
    if problems:
        raise CliError(f"{len(problems)} settings are invalid (see above)", ExitCode.ERROR)
    cli.out.done("All settings are valid.", {"faults": []})


@verb(config, "path", examples=["millstream config path"])
def path(cli: Terminal) -> None:
    """Print the path of the file of profiles.

    It may not exist.
    """
    where = str(config_path(environment()))
    cli.out.done(where, {"path": where})
