"""Verbs of definitions: `create`, `apply`, `change`, `pause`, `resume` and `rm`."""

import inspect
from collections.abc import Callable, Collection, Sequence
from functools import wraps
from typing import Annotated, Any, NamedTuple

import typer

from api.cli.shell.operations import JsonBody, operation
from api.cli.shell.options import Yes, option
from api.cli.shell.output import Row, to_row
from api.cli.shell.prompts import confirm
from api.cli.shell.terminal import Terminal, verb

NewOption = Annotated[bool, option("--new", "Fail if it exists, even with the same settings.")]
DryRun = Annotated[bool, option("--dry-run", "Show what would change, without changing it.")]


class Definition(NamedTuple):
    """A noun that can be created and replaced, by verbs of its group of commands.

    `name` annotates the argument of its name. `operations` names its operations by verb, `queues.{}_queue`; `configuration`
    makes the body of a put from options, which are its parameters; `note` returns a sentence about the result; `path` the
    parameters of its path.
    """

    app: typer.Typer
    label: str
    name: Any
    operations: str
    configuration: Callable[..., dict[str, Any]]
    note: Callable[[Row], str] = lambda _: ""
    path: Callable[[str], tuple[str, ...]] = lambda name: (name,)

    def operation(self, verb: str) -> str:
        """Return the name of an operation."""
        return self.operations.format(verb)

    def put(self, name: str, body: dict[str, Any], **conditions: Any) -> Any:
        """Return the call that creates or replaces an object."""
        return operation(self.operation("put"), *self.path(name), body=JsonBody(body), **conditions)


def secret_note(definition: Row) -> str:
    """Return a sentence with the signing secret of a new object, which is printed once."""
    return f" Secret: {definition['secret']}" if definition.get("secret") else ""


def put_verbs(noun: Definition, *, create: Sequence[str], apply: Sequence[str]) -> None:
    """Register `create` and `apply`, with these examples."""

    def create_definition(cli: Terminal, /, name: str, **options: Any) -> None:
        from millstream_client.sync.definitions import create as create_only

        only_new = options.pop("new")
        call = noun.put(name, noun.configuration(**options), if_none_match="*")
        stored = to_row(create_only(cli.client.transport, call, dict, only_new=only_new))
        outcome = "created" if stored["created"] else "already exists with these settings"
        cli.out.done(f"{noun.label} {name} {outcome}.{noun.note(stored)}", stored)

    def apply_definition(cli: Terminal, /, name: str, **options: Any) -> None:
        dry_run = options.pop("dry_run")
        call = noun.put(name, noun.configuration(**options), dry_run=dry_run)
        stored = to_row(cli.client.call(call))
        cli.out.done(f"{noun.label} {name} {_outcome(stored)}.{noun.note(stored)}", stored)

    noun_text = noun.label.lower()
    create_definition.__doc__ = (
        f"Create a {noun_text}.\n\nFails if it exists with other settings; see `apply`."
    )
    apply_definition.__doc__ = (
        f"Create a {noun_text} or replace its settings.\n\nOmitted settings take their defaults."
    )
    for word, function, own_option, examples in (
        ("create", create_definition, ("new", NewOption), create),
        ("apply", apply_definition, ("dry_run", DryRun), apply),
    ):
        declare(function, noun, [_flag(*own_option)])
        verb(noun.app, word, examples=examples)(function)


def change_verb(noun: Definition, *examples: str, without: Collection[str]) -> None:
    """Register `change`, with the options of the configuration that can change."""

    def change(cli: Terminal, /, name: str, **options: Any) -> None:
        body = JsonBody(noun.configuration(**options))
        row = cli.call(noun.operation("change"), *noun.path(name), body=body)
        cli.out.done(f"Updated {noun_text} {name}.", row)

    noun_text = noun.label.lower()
    change.__doc__ = (
        f"Change settings of a {noun_text}.\n\nThe others stay; null resets one to its default."
    )
    declare(change, noun, without=without)
    verb(noun.app, "change", examples=examples)(change)


def pause_verbs(noun: Definition, *, pause: str, resume: str, example: str) -> None:
    """Register `pause` and `resume`, with these helps and an example's name."""
    label = noun.label.lower()
    for word, outcome, help in (("pause", "paused", pause), ("resume", "resumed", resume)):
        function = _pausing(noun, word, outcome)
        function.__doc__ = help
        verb(noun.app, word, examples=[f"millstream {label} {word} {example}"])(function)


def _pausing(noun: Definition, word: str, outcome: str) -> Callable[..., None]:
    def set_paused(cli: Terminal, /, name: str) -> None:
        row = cli.call(noun.operation(word), *noun.path(name))
        cli.out.done(f"{noun.label} {name} {outcome}.", row)

    set_paused.__annotations__["name"] = noun.name
    return set_paused


def delete_verb(
    noun: Definition, names: Any, *examples: str
) -> Callable[[Callable[[Terminal, str], str]], None]:
    """Register `rm`, with the docstring of a function that returns a warning about an object.

    It is shown before each object is deleted, and has to be confirmed.
    """
    label = noun.label.lower()

    def register(warning: Callable[[Terminal, str], str]) -> None:
        def remove(cli: Terminal, /, names: list[str], yes: Yes = False) -> None:
            for name in names:
                confirm(cli, warning(cli, name), name, yes=yes)
                cli.client.call(operation(noun.operation("delete"), *noun.path(name)))
                cli.out.done(f"Deleted {label} {name}.", {"name": name, "deleted": True})

        remove.__annotations__["names"] = names
        remove.__doc__ = warning.__doc__
        verb(noun.app, "rm", examples=examples)(remove)

    return register


def _flag(name: str, annotation: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=False, annotation=annotation)


def declare(
    function: Callable[..., None],
    noun: Definition,
    own: Sequence[inspect.Parameter] = (),
    without: Collection[str] = (),
) -> None:
    """Give the function the options of the noun's configuration, and its own."""
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters_of = inspect.signature(noun.configuration).parameters
    options = [option for name, option in parameters_of.items() if name not in without]
    parameters = [
        inspect.Parameter("cli", kind, annotation=Terminal),
        inspect.Parameter("name", kind, annotation=noun.name),
        *(option.replace(kind=kind) for option in options),
        *own,
    ]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]


def with_options(
    configuration: Callable[..., Row],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of a configuration, before its own.

    Its second argument is what the configuration returns.
    """

    def wrap(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def command(cli: Terminal, /, **options: Any) -> None:
            given = {name: options.pop(name) for name in shared}
            function(cli, configuration(**given), **options)

        shared = inspect.signature(configuration).parameters
        own = list(inspect.signature(function).parameters.values())
        parameters = [own[0], *shared.values(), *own[2:]]
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return command

    return wrap


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
