"""YAML documents of definitions, with the location of each value for error messages.

    kind: queue
    name: orders
    spec:
      attempts_max: 5

Values are those of YAML 1.2: `no` and `12:30` are text, times too. Tags and merge keys are not supported.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from api.cli.config.profiles import did_you_mean
from api.cli.errors import CliError, ExitCode
from api.cli.io.stdin import stdin
from api.cli.manifests.kinds import KINDS
from api.cli.shell.output import Row

MEMBERS = ("kind", "name", "spec")
SUFFIXES = frozenset({".yaml", ".yml", ".json"})
STDIN = "-"
VALUES_MAX = 100_000  # of a document, with what its aliases repeat
DEPTH_MAX = 50
RESOLVERS = {  # of plain scalars, by tag: expression and first characters. Each is text in no YAML 1.1 reader
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


class InvalidDocument(Exception):
    """A document is invalid; the message starts with its location."""


@dataclass(frozen=True)
class Document:
    """A definition of a file. `locations`: line and column of each value by its JSON Pointer."""

    kind: str
    name: str
    spec: Row
    file: str = ""
    locations: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def members(self) -> Row:
        """Members of the document."""
        return {"kind": self.kind, "name": self.name, "spec": self.spec}

    @property
    def title(self) -> str:
        """Kind and name, as in commands."""
        return f"{self.kind} {self.name}"

    def location(self, pointer: str = "") -> str:
        """Return file, line and column of a member of `spec`, or of the closest one around it."""
        return _location(self.file, self.locations, f"/spec{pointer}")


def _location(file: str, locations: Mapping[str, tuple[int, int]], pointer: str) -> str:
    while pointer and pointer not in locations:
        pointer = pointer.rpartition("/")[0]
    line, column = locations.get(pointer, (1, 1))
    return f"{file}:{line}:{column}"


# ── Reading ──


def read_documents(paths: Iterable[Path]) -> list[Document]:
    """Return the documents of files and folders, `-` being standard input.

    Raises CliError with all faults of all files, so that nothing of an invalid file is applied.
    """
    documents, faults = list[Document](), list[str]()
    for file, text in _texts(paths):
        try:
            documents += parse_documents(text, file)
        except InvalidDocument as error:
            faults += error.args
    faults += _duplicates(documents)
    if faults:
        raise CliError("\n".join(faults), ExitCode.USAGE)
    if not documents:
        raise CliError("the files have no documents", ExitCode.USAGE)
    return documents


def _texts(paths: Iterable[Path]) -> Iterator[tuple[str, str]]:
    for path in paths:
        if str(path) == STDIN:
            yield "standard input", stdin().read().decode()
            continue
        try:
            for file in _files(path):
                yield str(file), file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise CliError(f"cannot read {path}: {error}", ExitCode.USAGE) from None


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file())


def _duplicates(documents: Iterable[Document]) -> list[str]:
    first: dict[tuple[str, str], Document] = {}
    faults = []
    for document in documents:
        earlier = first.setdefault((document.kind, document.name), document)
        if earlier is not document:
            faults.append(
                f"{document.location()}: {document.title} is also in {earlier.location()}"
            )
    return faults


def parse_documents(text: str, file: str) -> list[Document]:
    """Parse the documents of a file. Raises InvalidDocument with all of their faults."""
    import yaml

    loader = _loader()(text)
    documents, faults = list[Document](), list[str]()
    try:
        while loader.check_node():
            try:
                documents += _documents(loader.get_node(), file)
            except InvalidDocument as error:
                faults += error.args
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{file}:{mark.line + 1}:{mark.column + 1}" if mark else file
        faults.append(f"{where}: {error.problem or error.context}")
    except (yaml.YAMLError, RecursionError) as error:
        faults.append(f"{file}: {' '.join(str(error).split())}")
    if faults:
        raise InvalidDocument(*faults)
    return documents


def _documents(node: Any, file: str) -> Iterator[Document]:
    """Yield the document of a node; none for an empty one."""
    locations: dict[str, tuple[int, int]] = {}
    value = _Reader(file, locations).value(node, "")
    if value is None:
        return
    faults = _faults(value)
    if faults:
        raise InvalidDocument(
            *(f"{_location(file, locations, pointer)}: {fault}" for pointer, fault in faults)
        )
    yield Document(value["kind"], value["name"], value.get("spec") or {}, file, locations)


def _faults(value: Any) -> list[tuple[str, str]]:
    """Return the faults of a document's own members, with their pointers."""
    if not isinstance(value, dict):
        return [("", "a document is a mapping with kind, name and spec")]
    faults = [
        (f"/{name}", f"unknown field {name!r}{did_you_mean(name, MEMBERS)}")
        for name in value
        if name not in MEMBERS
    ]
    faults += [("", f"{name!r} is missing") for name in ("kind", "name") if name not in value]
    kind = value.get("kind", next(iter(KINDS)))
    if kind not in KINDS:
        faults.append(("/kind", f"unknown kind {kind!r}{did_you_mean(str(kind), KINDS)}"))
    if not isinstance(value.get("name", ""), str):
        faults.append(("/name", "'name' must be text; quote it"))
    if not isinstance(value.get("spec") or {}, dict):
        faults.append(("/spec", "'spec' must be a mapping of settings"))
    return faults


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
        return InvalidDocument(f"{_location(self.file, self.locations, pointer)}: {fault}")


# ── Writing ──


def dump_document(document: Document) -> str:
    """Format a document as YAML."""
    return dump(document.members)


def dump(value: Any) -> str:
    """Format a value as YAML, in the order of its members."""
    import yaml

    return str(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=1_000))
