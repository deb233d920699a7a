"""Reference page of every command, as in its help."""

from collections.abc import Container, Iterator
from typing import Any

from api.cli.reference.markdown import code, page, table
from api.cli.shell.terminal import COMMON

INTRO = """\
Every command with its arguments and options, as in `--help`. [The command line](cli.md) explains how they fit together. Commands with a noun and a verb, such as `millstream queue ls`, talk to a running service, and also have these options:
"""
NOT_RUN = "<!-- not run: tests/contract/cli/test_cli.py runs the examples of every help -->"
METAVARS = {
    "STR": "TEXT",
    "INT RANGE": "NUMBER",
    "INT": "NUMBER",
    "FLOAT RANGE": "NUMBER",
    "FLOAT": "NUMBER",
}
HEAD = ("", "description")


def commands_page(group: Any) -> str:
    """Return the page of every command below `group`, the whole command line."""
    common_rows: list[tuple[str, str]] = []
    parts = []
    for path, command in _leaves(group, ("millstream",)):
        common = [option for option in command.params if option.name in COMMON]
        common_rows = common_rows or [
            _row(option) for option in common if len(common) == len(COMMON)
        ]
        parts.append(_command(path, command, common=COMMON if len(common) == len(COMMON) else ()))
    return page("Commands", INTRO, table(HEAD, common_rows), *parts)


def _leaves(group: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if hasattr(command, "commands"):
            yield from _leaves(command, (*path, name))
        else:
            yield (*path, name), command


def _command(path: tuple[str, ...], command: Any, common: Container[str]) -> str:
    description, _, examples = (command.help or "").partition("\n\n\b\nExamples:\n")
    own = [
        option for option in command.params if option.name not in common and option.name != "help"
    ]
    parts = [f"## {' '.join(path)}", " ".join(description.split())]
    if own:
        parts.append(
            table(HEAD, [_row(option) for option in own if not getattr(option, "hidden", False)])
        )
    if examples:
        lines = "\n".join(line.strip() for line in examples.strip().splitlines())
        parts.append(f"{NOT_RUN}\n```sh\n{lines}\n```")
    return "\n\n".join(parts)


def _row(parameter: Any) -> tuple[str, str]:
    if parameter.param_type_name == "argument":
        name = parameter.name.rstrip("_").upper()
        return code(name if parameter.required else f"[{name}]"), parameter.help or ""
    declaration = ", ".join(code(option) for option in (*parameter.opts, *parameter.secondary_opts))
    if not parameter.is_flag:
        choices = getattr(parameter.type, "choices", None)
        declaration += f" {code('|'.join(map(str, choices)) if choices else _metavar(parameter))}"
    return declaration, parameter.help or ""


def _metavar(parameter: Any) -> str:
    name = str(parameter.metavar or parameter.type.name.upper())
    return METAVARS.get(name, name)
