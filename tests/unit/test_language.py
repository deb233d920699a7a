"""The style guide's rules for names, docstrings and catalogues."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from tests.documentation import ROOT
from tests.unit.test_layout import CATALOGUES

PACKAGES = ("api", "consumers", "pyspark_millstream", "spark_worker", "storage")
SDK = ROOT / "openapi" / "sdk" / "python" / "millstream_client"
GENERATED = ("core", "sync")
SUMMARY_MAX = 88
OPENERS = re.compile(r"(What|Who|Whose|Whom|Where|Whether|How|As|It|The same)\b")
QUOTED_OPENERS = re.compile(rf"[\"'][\s\\]*{OPENERS.pattern}")
PICTURES = re.compile(r"(door|shelf|room|place|carrier|keeper|gate|hand|word|fork)s?$")
PARTICIPLES = re.compile(r"(?!coalescing|logging|rendering|routing|tracing)\w+ing$")
NOUNS_IN_ING = {
    "api/aws/kinesis/actions/monitoring.py": "Amazon's name: EnableEnhancedMonitoring",
    "api/server/gc_tuning.py": "the term for choosing a collector's thresholds",
    "storage/domain/replays/pacing.py": "the REST field that it is",
    "storage/postgres/repositories/group_mapping.py": "object-relational mapping",
}
"""Modules whose name ends like a participle and is the field's noun, each with the reason."""

REPEATED_CLASSES = {
    "api/websocket/frames.py": "a frame's class is its component in AsyncAPI",
    "pyspark_millstream/client.py": "a package of its own, where it is the only client",
    "pyspark_millstream/errors.py": "a package of its own, with the SDK's name for its errors",
}
"""Files whose classes may have the name of another class, each with the reason."""

SHARED_IN_CATALOGUE = {
    ("archive_manifest", "jobs"): "a commit to the manifest ends its job in one transaction",
    ("definitions", "namespaces"): "a namespace admits a definition in one transaction",
    ("group_locks", "group_mapping"): "the rows of the tables of groups, read under a lock",
    ("groups", "group_locks"): "what changes a group holds its lock",
    ("groups", "group_mapping"): "the rows of the tables of groups",
    ("query_results", "jobs"): "a result is stored by the holder of its job",
    ("sessions", "credentials"): "a session has the grants of its credential, and ends with it",
    ("shard_lineage", "definitions"): "shards change with the locked definition of their stream",
    ("view_batches", "jobs"): "a batch is committed by the holder of the scan job",
    ("view_batches", "views"): "the rows of a revision, read under a lock",
    ("view_output_rows", "views"): "the progress of a revision, read with its rows",
    ("webhook_deliveries", "webhooks"): "a due delivery is read with its webhook",
}
"""Imports between modules of a catalogue: (module, imported module), each with the reason."""

VAGUE = frozenset(
    {
        "asked",
        "at",
        "found",
        "held",
        "kept",
        "known",
        "more",
        "one",
        "some",
        "taken",
        "there",
        "told",
        "wanted",
    }
)

GESTURES = re.compile(
    r"""
    (?:^|_)(?:
        told | tells? | asked | asks? | said | says? | hears? | heard | words? | spell(?:ed|s)? | speak | spoken
        | found | wanted | known | kept | held | taken | given | shown | looks? | looked | bury | buried | mend(?:ed)?
        | carry | carried | anew | soon | whoever | nought | forgets? | forgotten | let_go | give_back | take_in | wish(?:ed)?
        | strangers? | remarks? | trouble | manners | amiss | nobody | somebody | somewhere | elsewhere | seldom | things?
        | came | went | gone | stands | standing | hands? | door | gate | shelf | room | places? | way
    )(?:$|_)
    """,
    re.VERBOSE,
)
"""Words that name no noun and no verb of the field, in names of functions, classes, attributes and constants."""
FIELD_TERMS = re.compile(
    r"(?:\w+_)?(?:not_found|unknown|bytes_held|payload_gone|reply_taken|duplicate_forgotten)|gone|assigned_place"
)
"""Names of the API that contain one of these words: error codes, statuses, fields and AsyncAPI components."""

FILE_PROTOCOL = {
    ("storage/parquet/file_reader.py", "tell"): "`io.RawIOBase.tell`",
    ("storage/parquet/file_writer.py", "tell"): "PyArrow asks a sink for its position by it",
}
"""Methods of Python's file protocol, each with the reason."""

NAMED_ELSEWHERE = ("api/rest/schemas/", "storage/postgres/tables/")
"""Modules whose fields have the names of the REST API or of columns, vague or not."""

Violation = tuple[str, str]  # rule, file


def _parsed() -> Iterator[tuple[str, ast.Module]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield str(path.relative_to(ROOT)), ast.parse(path.read_text())


@lru_cache(maxsize=1)
def _nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Return all nodes of a file's tree, which is walked once for all rules."""
    return tuple(ast.walk(tree))


def _docstring_faults(tree: ast.Module) -> Iterator[str]:
    for node in _nodes(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if docstring := ast.get_docstring(node):
            summary = docstring.partition("\n\n")[0]
            if OPENERS.match(summary):
                yield "docstring-opener"
            if "\n" in summary or len(summary) > SUMMARY_MAX:
                yield "docstring-length"
            if not summary.rstrip().endswith((".", ":", "?", "!")):
                yield "docstring-period"


def _attribute_docstring_faults(tree: ast.Module) -> Iterator[str]:
    """Check the strings below constants and fields, which document them."""
    for node in _nodes(tree):
        body = getattr(node, "body", None)
        for statement in body[1:] if isinstance(body, list) else ():
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))) if OPENERS.match(text):
                    yield "docstring-opener"


def _vague_names(file: str, tree: ast.Module) -> Iterator[str]:
    allowed = {
        id(name)
        for node in _nodes(tree)
        if isinstance(node, ast.comprehension)
        for name in ast.walk(node.target)
    }
    if file.startswith(NAMED_ELSEWHERE):
        allowed |= {
            id(node.target)
            for struct in _nodes(tree)
            if isinstance(struct, ast.ClassDef)
            for node in struct.body
            if isinstance(node, ast.AnnAssign)
        }
    for node in _nodes(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) if name in VAGUE and id(node) not in allowed:
                yield "vague-name"
            case ast.arg(arg=name) if name in VAGUE:
                yield "vague-name"


def _gestures(file: str, tree: ast.Module) -> Iterator[str]:
    if file.startswith(NAMED_ELSEWHERE):
        return
    for name in _defined_names(tree):
        if (file, name) in FILE_PROTOCOL:
            continue
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).strip("_").lower()
        if GESTURES.search(words) and not FIELD_TERMS.fullmatch(words):
            yield "gesture-name"


def _defined_names(tree: ast.Module) -> Iterator[str]:
    """Yield names of functions, classes, fields, attributes and constants."""
    for node in _nodes(tree):
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                yield name
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Attribute(attr=name, ctx=ast.Store())
            ):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) if name.isupper():
                yield name


def violations() -> Counter[Violation]:
    """Count the violations of each rule in each file."""
    counts: Counter[Violation] = Counter()
    classes: dict[str, list[str]] = defaultdict(list)
    for file, tree in _parsed():
        stem = Path(file).stem
        if file not in NOUNS_IN_ING and (PICTURES.match(stem) or PARTICIPLES.match(stem)):
            counts["module-name", file] += 1
        for rule in (
            *_docstring_faults(tree),
            *_attribute_docstring_faults(tree),
            *_vague_names(file, tree),
            *_gestures(file, tree),
            *_catalogue_imports(file, tree),
        ):
            counts[rule, file] += 1
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and file not in REPEATED_CLASSES:
                classes[node.name].append(file)
    for files in classes.values():
        for file in files if len(files) > 1 else ():
            counts["class-name-repeated", file] += 1
    for path in sorted((ROOT / "tests").rglob("*.py")):
        text = path.read_text()
        if not QUOTED_OPENERS.search(text):
            continue  # no docstring opens so, and parsing takes most of the time
        tree = ast.parse(text)
        for rule in (*_docstring_faults(tree), *_attribute_docstring_faults(tree)):
            if rule == "docstring-opener":
                counts[rule, str(path.relative_to(ROOT))] += 1
    for path in sorted(SDK.rglob("*.py")):
        if path.relative_to(SDK).parts[0] not in GENERATED:
            tree = ast.parse(path.read_text())
            for rule in (*_docstring_faults(tree), *_attribute_docstring_faults(tree)):
                counts[rule, str(path.relative_to(ROOT))] += 1
    return counts


def _catalogue_imports(file: str, tree: ast.Module) -> Iterator[str]:
    """Check that modules of a catalogue import none of the others but `_shared`."""
    folder, stem = Path(file).parent, Path(file).stem
    if folder.name in CATALOGUES and stem != "__init__":  # it gathers the others
        package = ".".join(folder.parts) + "."
        for node in _nodes(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(package):
                imported = (node.module or "").removeprefix(package)
                if imported != "_shared" and (stem, imported) not in SHARED_IN_CATALOGUE:
                    yield "catalogue-import"


def test_no_violation_of_the_style_guide():
    assert violations() == {}, "docs/internals/style.md has the rules"


CONSTANT = re.compile(r"\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b")
FOREIGN = re.compile(r"NUM_BATCHES_TO_RETAIN|(AWS|MILLSTREAM|OTEL|XDG)_\w+")
"""Environment variables, and constants of other software, that docstrings cite."""


def test_docstrings_cite_existing_constants():
    cited: dict[str, str] = {}
    used: set[str] = set()
    for file, tree in _parsed():
        source = (ROOT / file).read_text()
        for node in _nodes(tree):
            match node:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    cited |= dict.fromkeys(CONSTANT.findall(text), file)
                    source = source.replace(text, "")
                case _:
                    pass
        used.update(CONSTANT.findall(source))
    lua = " ".join(path.read_text() for path in (ROOT / "storage").rglob("*.lua"))
    used.update(CONSTANT.findall(lua))

    assert {
        name: file for name, file in cited.items() if name not in used and not FOREIGN.match(name)
    } == {}
