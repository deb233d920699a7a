"""`millstream profile`: services by name."""

from typing import Annotated

import typer

from api.cli.config.process_settings import environment
from api.cli.config.profile_file import put_profile, remove_profile, select_profile
from api.cli.config.profiles import (
    PROFILE_KEYS,
    config_path,
    parse_profile_name,
    read_config,
    selected_profile,
)
from api.cli.errors import CliError, ExitCode
from api.cli.grammar.common_options import parsed_by
from api.cli.shell.completion import profile_names
from api.cli.shell.options import Yes, option
from api.cli.shell.output import Column, Row, table
from api.cli.shell.prompts import confirm
from api.cli.shell.terminal import Terminal, noun, verb

profile = noun()

PROFILES = table("name", "url", Column("api_key", "key"), "ca_file", "selected")
HIDDEN = "**********"


NewName = Annotated[str, typer.Argument(parser=parsed_by(parse_profile_name), help="Profile.")]
Name = Annotated[str, typer.Argument(autocompletion=profile_names, help="Profile.")]
Names = Annotated[list[str], typer.Argument(autocompletion=profile_names, help="Profiles.")]


@verb(profile, "ls", examples=["millstream profile ls"])
def list_profiles(cli: Terminal) -> None:
    """List profiles. Keys are not shown."""
    selected = selected_profile(environment())
    profiles = read_config(config_path(environment())).get("profiles", {})
    cli.out.rows((_row(name, values, selected) for name, values in profiles.items()), PROFILES)


def _row(name: str, values: Row, selected: str | None) -> Row:
    hidden = {"api_key": HIDDEN} if values.get("api_key") else {}
    empty = dict.fromkeys(sorted(PROFILE_KEYS))
    return {"name": name, **empty, **values, **hidden, "selected": name == selected}


@verb(
    profile,
    "add",
    examples=["millstream profile add staging --url https://millstream.example.com"],
)
def add(
    cli: Terminal,
    name: NewName,
    replace: Annotated[bool, option("--replace", "Replace the profile if it exists.")] = False,
    use: Annotated[bool, option("--use", "Select the profile.")] = False,
) -> None:
    """Add a profile.

    It has the values of --url, --api-key and --ca-file. `millstream login` asks for the key, so that it is not in the history of your shell.
    """
    path = config_path(environment())
    if not replace and name in read_config(path).get("profiles", {}):
        raise CliError(f"profile {name} already exists; use --replace")
    values = {field: value for field, value in cli.options.items() if field in PROFILE_KEYS}
    if "url" not in values:
        raise CliError("specify --url", ExitCode.USAGE)
    cli.target  # noqa: B018  raises for an invalid URL
    put_profile(path, name, values, selects=use)
    cli.out.done(f"Added profile {name} to {path}.", {"name": name, "path": str(path)})


@verb(profile, "use", examples=["millstream profile use staging"])
def use(cli: Terminal, name: Name) -> None:
    """Select the profile that commands use."""
    select_profile(config_path(environment()), name)
    cli.out.done(f"Selected profile {name}.", {"name": name, "selected": True})
    if (variable := environment().get("MILLSTREAM_PROFILE", name)) != name:
        cli.print_notice(f"MILLSTREAM_PROFILE selects {variable} instead, as long as it is set.")


@verb(profile, "rm", examples=["millstream profile rm staging --yes"])
def remove(cli: Terminal, names: Names, yes: Yes = False) -> None:
    """Delete profiles with their keys."""
    for name in names:
        confirm(cli, f"Profile {name} and its key will be deleted.", name, yes=yes)
        remove_profile(config_path(environment()), name)
        cli.out.done(f"Deleted profile {name}.", {"name": name, "deleted": True})
