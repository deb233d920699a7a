"""Reference page of every command, as in its help."""

from collections.abc import Container, Iterator
from typing import Any

from api.cli.grammar.common_options import COMMON
from api.cli.grammar.help import EXAMPLES, declaration, description
from api.cli.reference.markdown import code, page, table

INTRO = """\
Every command with its arguments and options, as in `--help`. [The command line](cli.md) explains how they fit together. Commands with a noun and a verb, such as `millstream queue ls`, call a running service, and also have these options, before or after the noun and the verb:
"""
NOT_RUN = "<!-- not run: tests/contract/cli/test_examples.py runs the examples of every help -->"
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
    description, _, examples = (command.help or "").partition(EXAMPLES)
    own = [
        option for option in command.params if option.name not in common and option.name != "help"
    ]
    parts = [f"## {' '.join(path)}", " ".join(description.split())]
    if own:
        parts.append(
            table(HEAD, [_row(option) for option in own if not getattr(option, "hidden", False)])
        )
    if examples:
        lines = "\n".join(line.removeprefix("  ") for line in examples.splitlines())
        parts.append(f"{NOT_RUN}\n```sh\n{lines}\n```")
    return "\n\n".join(parts)


def _row(parameter: Any) -> tuple[str, str]:
    return code(declaration(parameter)), description(parameter)
