"""`millstream login` and `millstream ui`: access to a service."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from api.cli.config.process_settings import environment
from api.cli.config.profiles import (
    config_path,
    find_target,
    is_on_this_machine,
    parse_profile_name,
    read_config,
)
from api.cli.errors import CliError, ExitCode
from api.cli.grammar.common_options import parsed_by
from api.cli.shell.operations import operation
from api.cli.shell.options import option
from api.cli.shell.output import Row, to_row
from api.cli.shell.terminal import Terminal, noun, verb

if TYPE_CHECKING:
    from api.cli.config.profiles import ServiceTarget

access = noun()

Name = Annotated[
    str, typer.Argument(parser=parsed_by(parse_profile_name), help="Profile to store.")
]
WithKey = Annotated[bool, option("--with-key", "Read the key from standard input.")]


@verb(
    access,
    "login",
    examples=["millstream login", "millstream login staging --with-key < key.txt"],
)
def login(cli: Terminal, name: Name = "default", with_key: WithKey = False) -> None:
    """Log in to a service.

    Asks for its address and a key, checks them, and stores them as the selected profile, in a file that only you can read.
    A service that requires no keys is stored without one.
    """
    from api.cli.config.profile_file import put_profile

    url = str(cli.options.get("url") or _prompt_for_url(cli, name))
    target = find_target({}, url=url, ca_file=cli.options.get("ca_file"))
    _warn_of_plain_http(cli, target)
    key, identity = _authenticate(cli, target, with_key=with_key)
    path = config_path(environment())
    values = {"url": url, "api_key": key, "ca_file": target.ca_file.value}
    put_profile(path, name, values, selects=True)
    sentence = f"Logged in to {url} as {identity['name']}; profile {name} is stored in {path}."
    cli.out.done(sentence, {"profile": name, "url": url, "name": identity["name"]})


def _prompt_for_url(cli: Terminal, name: str) -> str:
    profiles = read_config(config_path(environment())).get("profiles", {})
    if not cli.is_for_a_person:
        raise CliError("specify --url", ExitCode.USAGE)
    suggested = profiles.get(name, {}).get("url") or find_target({}).url.value
    return str(typer.prompt("Address of the service", default=suggested, err=True)).strip()


def _warn_of_plain_http(cli: Terminal, target: "ServiceTarget") -> None:
    url = target.url.value
    if url.startswith("http://") and not is_on_this_machine(url):
        cli.print_notice(f"{url} is not encrypted: the key crosses the network in the clear.")


def _authenticate(cli: Terminal, target: "ServiceTarget", *, with_key: bool) -> tuple[str, Row]:
    """Return the key and its identity; a service that requires none is asked without one."""
    from millstream_client.errors import Unauthenticated

    key = str(cli.options.get("api_key") or (sys.stdin.read().strip() if with_key else ""))
    if not key:
        try:
            return "", _whoami(cli, target, "")
        except Unauthenticated:
            key = _prompt_for_key(cli)
    return key, _whoami(cli, target, key)


def _prompt_for_key(cli: Terminal) -> str:
    if not cli.is_for_a_person:
        raise CliError("pass the key to standard input, with --with-key", ExitCode.USAGE)
    return str(typer.prompt("API key", hide_input=True, err=True)).strip()


def _whoami(cli: Terminal, target: "ServiceTarget", key: str) -> Row:
    api_key = replace(target.api_key, value=key)
    client = cli.connect(0.0, replace(target, api_key=api_key))
    return to_row(client.call(operation("keys.whoami")))


@verb(access, "ui", examples=["millstream ui -q", "millstream ui queues/orders -q"])
def ui(
    cli: Terminal,
    page: Annotated[str, typer.Argument(help="Page, such as queues/orders.")] = "",
) -> None:
    """Open the dashboard in a browser.

    Prints its address; with -q or -o json, only that. The browser asks for a key: none is passed on, because addresses are recorded in
    histories and logs.
    """
    url = f"{cli.target.url.value.rstrip('/')}/ui/{page.strip('/')}".rstrip("/")
    if not cli.out.for_people:
        cli.out.show({"url": url})
        return
    cli.out.line(url.encode())
    if not cli.out.quiet and not _open_browser(url):
        cli.print_notice("No browser was found; open this address.")


def _open_browser(url: str) -> bool:
    import webbrowser

    return webbrowser.open(url)
