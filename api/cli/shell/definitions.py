"""`create` and `apply`: the verbs that put a definition, with one set of options for both."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import typer

from api.cli.shell.output import Row, to_row
from api.cli.shell.terminal import Terminal, verb

NewOption = Annotated[
    bool, typer.Option("--new", help="Fail if it exists, even with the same settings.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would change, without changing it.")
]


class Definition(NamedTuple):
    """A noun that can be created and replaced.

    `name` annotates the argument of its name. `put` returns the SDK's call for a name and conditions; `configuration` makes
    the body from options, which are its parameters; `note` returns a sentence about the result.
    """

    label: str
    name: Any
    put: Callable[..., Any]
    configuration: Callable[..., dict[str, Any]]
    note: Callable[[Row], str] = lambda _: ""


def put_verbs(
    app: typer.Typer, noun: Definition, *, create: Sequence[str], apply: Sequence[str]
) -> None:
    """Register `create` and `apply`, with these examples."""

    def create_definition(cli: Terminal, /, name: str, **options: Any) -> None:
        from millstream_client.sync.definitions import create as create_only

        only_new = options.pop("new")
        call = replace(noun.put(name, if_none_match="*"), json=noun.configuration(**options))
        stored = to_row(create_only(cli.client.transport, call, dict, only_new=only_new))
        outcome = "created" if stored["created"] else "already exists with these settings"
        cli.out.done(f"{noun.label} {name} {outcome}.{noun.note(stored)}", stored)

    def apply_definition(cli: Terminal, /, name: str, **options: Any) -> None:
        dry_run = options.pop("dry_run")
        call = replace(noun.put(name, dry_run=dry_run), json=noun.configuration(**options))
        stored = to_row(cli.client.call(call))
        cli.out.done(f"{noun.label} {name} {_outcome(stored)}.{noun.note(stored)}", stored)

    noun_text = noun.label.lower()
    create_definition.__doc__ = f"Create a {noun_text}; fail if it exists with other settings."
    apply_definition.__doc__ = (
        f"Create a {noun_text}, or replace its configuration.\n\n"
        "Omitted settings take their defaults."
    )
    for word, function, option, examples in (
        ("create", create_definition, ("new", NewOption), create),
        ("apply", apply_definition, ("dry_run", DryRun), apply),
    ):
        _declare(function, noun, *option)
        verb(app, word, examples=examples)(function)


def _declare(function: Callable[..., None], noun: Definition, option: str, type_: Any) -> None:
    """Give the function the options of the noun's configuration, and one of its own."""
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [
        inspect.Parameter("cli", kind, annotation=Terminal),
        inspect.Parameter("name", kind, annotation=noun.name),
        *inspect.signature(noun.configuration).parameters.values(),
        inspect.Parameter(option, kind, default=False, annotation=type_),
    ]
    keyword_only = [parameter.replace(kind=kind) for parameter in parameters]
    function.__signature__ = inspect.Signature(keyword_only)  # type: ignore[attr-defined]


def _outcome(stored: Row) -> str:
    """Return what a PUT did or, in a dry run, would do."""
    if not stored["created"] and not stored["changes"]:
        return "would not change" if stored["dry_run"] else "unchanged"
    would = "would be " if stored["dry_run"] else ""
    if stored["created"]:
        return f"{would}created"
    changes = [
        f"{change['pointer'][1:]} {_json(change['before'])} → {_json(change['after'])}"
        for change in stored["changes"]
    ]
    return f"{would}updated: {', '.join(changes)}"


def _json(value: Any) -> str:
    from msgspec.json import encode

    return encode(value).decode()
