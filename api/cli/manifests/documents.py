"""YAML documents of definitions, with the location of each value for error messages.

kind: queue
name: orders
spec:
  attempts_max: 5
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from api.cli.config.profiles import did_you_mean
from api.cli.errors import CliError, ExitCode
from api.cli.io.stdin import stdin
from api.cli.manifests.kinds import KINDS
from api.cli.manifests.yaml_values import InvalidDocument, YamlValue, dump, read_values
from api.cli.shell.output import Row

MEMBERS = ("kind", "name", "spec")
SUFFIXES = frozenset({".yaml", ".yml", ".json"})
STDIN = "-"
NOTHING_READ = YamlValue(None)


@dataclass(frozen=True)
class ManifestDocument:
    """A definition of a file. `source`: what was read."""

    kind: str
    name: str
    spec: Row
    source: YamlValue = NOTHING_READ

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
        return self.source.location(f"/spec{pointer}")


# ── Reading ──


def read_documents(paths: Iterable[Path]) -> list[ManifestDocument]:
    """Return the documents of files and folders, `-` being standard input.

    Raises CliError with all faults of all files, so that nothing of an invalid file is applied.
    """
    documents, faults = list[ManifestDocument](), list[str]()
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


def _duplicates(documents: Iterable[ManifestDocument]) -> list[str]:
    first: dict[tuple[str, str], ManifestDocument] = {}
    faults = []
    for document in documents:
        earlier = first.setdefault((document.kind, document.name), document)
        if earlier is not document:
            faults.append(
                f"{document.location()}: {document.title} is also in {earlier.location()}"
            )
    return faults


def parse_documents(text: str, file: str) -> list[ManifestDocument]:
    """Parse the documents of a file. Raises InvalidDocument with all of their faults."""
    documents, faults = list[ManifestDocument](), list[str]()
    for read in read_values(text, file):
        try:
            documents += _documents(read)
        except InvalidDocument as error:
            faults += error.args
    if faults:
        raise InvalidDocument(*faults)
    return documents


def _documents(read: YamlValue | InvalidDocument) -> Iterator[ManifestDocument]:
    """Yield the document of a value; none for an empty one. Raises InvalidDocument."""
    if isinstance(read, InvalidDocument):
        raise read
    if read.value is None:
        return
    if faults := _faults(read.value):
        raise InvalidDocument(*(f"{read.location(pointer)}: {fault}" for pointer, fault in faults))
    spec = read.value.get("spec") or {}
    yield ManifestDocument(read.value["kind"], read.value["name"], spec, read)


def parse_settings(text: str, file: str, kind: str, name: str) -> ManifestDocument:
    """Parse the settings of one definition. Raises InvalidDocument."""
    reads = list(read_values(text, file, "/spec"))
    if faults := [
        fault for read in reads if isinstance(read, InvalidDocument) for fault in read.args
    ]:
        raise InvalidDocument(*faults)
    values = [read for read in reads if isinstance(read, YamlValue)]
    if len(values) != 1 or not isinstance(values[0].value, dict):
        raise InvalidDocument(f"{file}:1:1: the settings are one mapping of names to values")
    return ManifestDocument(kind, name, values[0].value, values[0])


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


# ── Writing ──


def dump_document(document: ManifestDocument) -> str:
    """Format a document as YAML."""
    return dump(document.members)
