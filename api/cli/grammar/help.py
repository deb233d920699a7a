"""Help of a command: usage, metavars, defaults and sections, at 80 columns."""

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

from api.cli.grammar.common_options import CONNECTION
from api.config.durations import show_duration

METAVARS = {"int": "N", "int range": "N", "float": "N", "float range": "N", "path": "PATH"}
TEXT = "TEXT"
DURATION = "DURATION"
EXAMPLES = "\n\n\b\nExamples:\n"
EXAMPLE_COLUMNS_MAX = 74  # of 80, less the indentation of examples and a backslash

Entries = list[tuple[str, str]]


def summary(help: str) -> str:
    """Return the first sentence, for lists of commands; it is never shortened."""
    first = " ".join(help.partition("\n\n")[0].split())
    sentence, stop, _ = first.partition(". ")
    return sentence + "." if stop else sentence


# ── Parameters ──


def metavar(parameter: Any) -> str:
    """Return what stands for a parameter's value: NAME, N, DURATION, or its choices."""
    if parameter.metavar:
        return str(parameter.metavar)
    if parameter.param_type_name == "argument":
        return str(parameter.name).rstrip("_").replace("_", "-").upper()
    if choices := getattr(parameter.type, "choices", None):
        return "|".join(map(str, choices))
    kinds = getattr(parameter.type, "types", None) or [parameter.type]
    return " ".join(METAVARS.get(kind.name, TEXT) for kind in kinds)


def argument_usage(argument: Any) -> str:
    """Format an argument for the usage line: NAME, [NAME], NAME..."""
    name = metavar(argument) + ("..." if argument.nargs != 1 else "")
    return name if argument.required else f"[{name}]"


def declaration(parameter: Any) -> str:
    """Format a parameter with its names and metavar: -n, --limit N."""
    if parameter.param_type_name == "argument":
        return argument_usage(parameter)
    positive = ", ".join(sorted(parameter.opts, key=len))
    names = " / ".join([positive, *parameter.secondary_opts])
    return names if parameter.is_flag else f"{names} {metavar(parameter)}"


def description(parameter: Any) -> str:
    """Return a parameter's help with its choices, default and bounds in brackets."""
    facts = "; ".join(filter(None, _facts(parameter)))
    return f"{parameter.help or ''} [{facts}]".strip() if facts else parameter.help or ""


def _facts(parameter: Any) -> Iterable[str]:
    is_option = parameter.param_type_name == "option"
    if not is_option and (choices := getattr(parameter.type, "choices", None)):
        yield ", ".join(map(str, choices))
    if is_option and parameter.required:
        yield "required"
    yield _default(parameter)
    yield _bounds(parameter.type)


def _default(parameter: Any) -> str:
    value = parameter.default
    if callable(value) or value in (None, False, "", (), []):
        return ""
    if parameter.param_type_name == "option" and parameter.is_flag:
        return f"default: {parameter.opts[0]}" if parameter.secondary_opts else ""
    return f"default: {_value(value, is_duration=parameter.metavar == DURATION)}"


def _value(value: Any, *, is_duration: bool) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    if is_duration:
        return show_duration(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _bounds(kind: Any) -> str:
    low, high = getattr(kind, "min", None), getattr(kind, "max", None)
    if low is not None and high is not None:
        return f"{low:g} to {high:g}"
    if low is not None:
        return f"at least {low:g}" if low else ""
    return f"at most {high:g}" if high is not None else ""


# ── Sections ──


def sections(parameters: Iterable[Any]) -> list[tuple[str, Entries]]:
    """Return the entries of a command's parameters; those of the connection come last."""
    shown = [parameter for parameter in parameters if not getattr(parameter, "hidden", False)]
    arguments = [each for each in shown if each.param_type_name == "argument"]
    options = [each for each in shown if each.param_type_name == "option"]
    parts = (
        ("Arguments", arguments),
        ("Options", [each for each in options if each.name not in CONNECTION]),
        ("Connection", [each for each in options if each.name in CONNECTION]),
    )
    return [(title, list(map(entry, part))) for title, part in parts if part]


def entry(parameter: Any) -> tuple[str, str]:
    """Return a parameter's declaration and description."""
    return declaration(parameter), description(parameter)


def write_sections(formatter: Any, parts: Iterable[tuple[str, Entries]]) -> None:
    """Write sections, each as a list of definitions."""
    for title, entries in parts:
        with formatter.section(title):
            formatter.write_dl(entries)


# ── Examples ──


def with_examples(text: str, examples: Sequence[str]) -> str:
    """Return help with examples below, which keep their lines."""
    lines = "\n".join(f"  {line}" for example in examples for line in _folded(example))
    return f"{text}{EXAMPLES}{lines}" if examples else text


def _folded(example: str) -> list[str]:
    """Fold a line that is too long before an option, a pipe or a redirection."""
    lines, line = list[str](), ""
    for part in _parts(example):
        if line and len(line) + len(part) > EXAMPLE_COLUMNS_MAX:
            lines.append(f"{line} \\")
            line = "  "
        line += part if line.strip() == "" else f" {part}"
    return [*lines, line]


def _parts(example: str) -> list[str]:
    """Split before each word that begins with a dash, a pipe or an angle bracket."""
    parts: list[str] = []
    for word in example.split(" "):
        if parts and not word.startswith(("-", "|", ">", "<")):
            parts[-1] += f" {word}"
        else:
            parts.append(word)
    return parts
