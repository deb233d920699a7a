"""YAML values with the location of each: those of YAML 1.2, without tags and merge keys.

`no` and `12:30` are text, times too.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from api.cli.shell.output import Row

VALUES_MAX = 100_000  # of a document, with what its aliases repeat
DEPTH_MAX = 50
RESOLVERS = {  # of plain scalars, by tag: expression and first characters. YAML 1.1 has these too
    "tag:yaml.org,2002:null": (r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    "tag:yaml.org,2002:bool": (r"^(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    "tag:yaml.org,2002:int": (r"^[-+]?(?:0|[1-9][0-9]*)$", list("-+0123456789")),
    "tag:yaml.org,2002:float": (
        r"^(?:[-+]?[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]+)?$",
        list("-+.0123456789"),
    ),
}
_SCALARS: dict[str, Callable[[str], Any]] = {
    "tag:yaml.org,2002:null": lambda _: None,
    "tag:yaml.org,2002:bool": lambda text: text.lower() == "true",
    "tag:yaml.org,2002:int": int,
    "tag:yaml.org,2002:float": float,
    "tag:yaml.org,2002:str": str,
}
_TAGS = {*_SCALARS, "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"}


@dataclass(frozen=True)
class YamlValue:
    """Value of a document. `locations`: line and column of its members by JSON Pointer."""

    value: Any
    file: str = ""
    locations: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def location(self, pointer: str = "") -> str:
        """Return file, line and column of a value, or of the closest one around it."""
        while pointer and pointer not in self.locations:
            pointer = pointer.rpartition("/")[0]
        line, column = self.locations.get(pointer, (1, 1))
        return f"{self.file}:{line}:{column}"


class InvalidDocument(Exception):
    """A document is invalid; the message starts with its location."""


def read_values(text: str, file: str, root: str = "") -> Iterator[YamlValue | InvalidDocument]:
    """Yield the value of each document of a text, or its fault; a fault of syntax is the last.

    `root`: JSON Pointer of the values.
    """
    import yaml

    loader = _loader()(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            locations: dict[str, tuple[int, int]] = {}
            try:
                yield YamlValue(_Reader(file, locations).value(node, root), file, locations)
            except InvalidDocument as error:
                yield error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else file
        yield InvalidDocument(f"{where}: {error.problem or error.context}")
    except (yaml.YAMLError, RecursionError) as error:
        yield InvalidDocument(f"{file}: {' '.join(str(error).split())}")


@cache
def _loader() -> Any:
    """Return a loader that builds nodes, and knows the scalars of YAML 1.2 only."""
    import re

    import yaml

    class CoreSchemaLoader(yaml.SafeLoader):
        """Loader of nodes; nothing is constructed from them."""

        yaml_implicit_resolvers: dict[str, Any] = {}

    for tag, (expression, first) in RESOLVERS.items():
        CoreSchemaLoader.add_implicit_resolver(tag, re.compile(expression), first)
    return CoreSchemaLoader


@dataclass
class _Reader:
    """Converts nodes to values, and notes the location of each."""

    file: str
    locations: dict[str, tuple[int, int]]

    def value(self, node: Any, pointer: str) -> Any:
        """Return the value of a node. Raises InvalidDocument."""
        self.locations[pointer] = (node.start_mark.line + 1, node.start_mark.column + 1)
        if len(self.locations) > VALUES_MAX or pointer.count("/") > DEPTH_MAX:
            limits = f"{VALUES_MAX} values and {DEPTH_MAX} levels"
            raise self._fault("", f"a document has at most {limits}")
        if node.tag not in _TAGS:
            raise self._fault(pointer, f"tag {node.tag!r} is not supported")
        if node.id == "mapping":
            return self._mapping(node, pointer)
        if node.id == "sequence":
            return [self.value(item, f"{pointer}/{i}") for i, item in enumerate(node.value)]
        try:
            return _SCALARS[node.tag](node.value)
        except ValueError:
            raise self._fault(pointer, "the number has too many digits") from None

    def _mapping(self, node: Any, pointer: str) -> Row:
        values: Row = {}
        for key, item in node.value:
            if key.id != "scalar":
                raise self._fault(pointer, "names of members are text")
            name = str(key.value)
            inner = f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}"
            value = self.value(item, inner)
            self.locations[inner] = (key.start_mark.line + 1, key.start_mark.column + 1)
            if name in values:
                raise self._fault(inner, f"{name!r} occurs twice")
            values[name] = value
        return values

    def _fault(self, pointer: str, fault: str) -> InvalidDocument:
        return InvalidDocument(
            f"{YamlValue(None, self.file, self.locations).location(pointer)}: {fault}"
        )


def dump(value: Any) -> str:
    """Format a value as YAML, in the order of its members."""
    import yaml

    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=1_000))
