"""Kinds of definitions that YAML documents describe."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

from api.cli.errors import CliError, ExitCode
from api.cli.shell.operations import JsonBody
from api.cli.shell.output import Row
from api.cli.shell.terminal import Terminal
from api.nouns import NOUNS

HIDDEN_VALUE = "(secret)"  # of storage.domain.definitions, which would load msgspec
OF_STREAM = "stream:"  # of storage.domain.names
OF_PAUSE = frozenset({"paused", "enabled"})  # not settings: only pause and resume change them


class DefinitionKind(NamedTuple):
    """A noun whose definitions are documents. `operations`: their names by verb.

    With a `parent`, names are those of both, such as `orders/billing`.
    """

    name: str
    plural: str
    operations: str
    parent: str = ""

    def path(self, name: str) -> tuple[str, ...]:
        """Return the parameters of the path of an object. Raises CliError."""
        return parts_of(name) if self.parent else (name,)

    def get(self, cli: Terminal, name: str) -> Row:
        """Return a definition. Raises NotFound."""
        return cli.call(self.operations.format("get"), *self.path(name))

    def list_all(self, cli: Terminal, prefix: str = "") -> Iterator[Row]:
        """Yield all definitions by name."""
        listing = f"{self.operations.format('list')}s"
        if not self.parent:
            yield from cli.pages(listing, prefix=prefix)
            return
        of_parent, _, rest = prefix.partition("/")
        for parent in KINDS[self.parent].list_all(cli, of_parent):
            if "/" not in prefix or parent["name"] == of_parent:
                for definition in cli.pages(listing, parent["name"], prefix=rest):
                    yield {**definition, "name": f"{parent['name']}/{definition['name']}"}

    def own(self, cli: Terminal, prefix: str = "") -> Iterator[Row]:
        """Yield the definitions by name, without topics that stand for a stream with routes."""
        for definition in self.list_all(cli, prefix):
            if self.parent or not definition["name"].startswith(OF_STREAM):
                yield definition

    def put(self, cli: Terminal, name: str, settings: Row, **conditions: Any) -> Row:
        """Create or replace a definition, and return it with `created` and `changes`."""
        body = JsonBody(settings)
        return cli.call(self.operations.format("put"), *self.path(name), body=body, **conditions)

    def settings_of(self, definition: Row) -> Row:
        """Return the settings of a definition, which a PUT takes. Secrets are never among them."""
        names = [name for name in self._setting_names() if name in definition]
        return {name: _without_secrets(definition[name]) for name in names}

    def _setting_names(self) -> list[str]:
        """Return the members of the body of a PUT, from the generated client."""
        import attrs

        module = import_module(f"millstream_client.core.models.{self.name}_config")
        model = getattr(module, f"{self.name.capitalize()}Config")
        names = [field.name.rstrip("_") for field in attrs.fields(model)]
        return [name for name in names if name not in OF_PAUSE]


def _without_secrets(setting: Any) -> Any:
    """Leave out the headers of a route's URL if they have values: omitted ones stay unchanged.

    The secret of credentials is left as HIDDEN_VALUE, which a PUT keeps, and refuses if there is no secret to keep.
    """
    if not isinstance(setting, dict):
        return setting
    return {name: value for name, value in setting.items() if not _has_secrets(value)}


def _has_secrets(value: Any) -> bool:
    if not isinstance(value, dict) or not value:
        return False
    return all(each == HIDDEN_VALUE for each in value.values())


def parts_of(name: str) -> tuple[str, str]:
    """Return both names in one such as `orders/billing`. Raises CliError."""
    parent, slash, own = name.partition("/")
    if not slash or not parent or not own:
        raise CliError(f"'{name}' must be TOPIC/ROUTE, such as orders/billing", ExitCode.USAGE)
    return parent, own


KINDS = {
    noun.name: DefinitionKind(noun.name, noun.plural, noun.manifest, noun.parent)
    for noun in NOUNS
    if noun.manifest
}
"""Kinds by name; one refers to earlier ones, and queues to queues."""


def etag_of(definition: Row) -> str:
    """Return the ETag of a definition's version."""
    return f'"v{definition["version"]}"'
