"""The list of nouns: complete, and the only one."""

import ast
import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module

import pytest
from typer.core import TyperGroup

from api.app import create_app
from api.cli.command_tree import command_tree
from api.cli.shell.error_messages import HINTS
from api.nouns import NOUNS
from storage.domain.errors import ErrorCode
from tests.browser.pages import PAGES
from tests.contract.http import test_conditions, test_declarative
from tests.documentation import ROOT

FOLDERS = {
    "api.rest.routes": lambda noun: noun.routes,
    "api.admin.pages": lambda noun: noun.pages,
    "api.cli.commands": lambda noun: [group.partition(":")[0] for group in noun.commands],
}
OF_NO_NOUN = {
    "api.rest.routes": {"metrics"},
    "api.admin.pages": {"_shared", "search"},
    "api.cli.commands": {"backups", "bench", "documents", "login", "manifests", "processes", "top"},
}
ENUMERATIONS = {
    "api/admin/alerts/alert.py": "the kinds of alerts that are warnings, and the facts of each noun",
    "api/admin/alerts/engine.py": "the name and the list of each kind of alert",
    "api/admin/alerts/inputs.py": "what the start page reads of each noun",
    "api/aws/sqs/errors.py": "the codes that have an error of their own in SQS",
    "api/cli/commands/job.py": "the kinds of jobs, in the layer that lists them",
    "api/cli/reference/limits.py": "the order of the page, which has more than nouns",
    "api/http/routing.py": "the nouns with fast routes, and their metrics",
    "api/nouns.py": "the list",
    "api/observability/tracing.py": "the actions of each kind of span",
    "api/rest/routes/queues.py": "an example, whose fields are named as nouns",
    "api/rest/routes/timeseries.py": "examples of series of what is measured",
    "consumers/maintenance/scheduler.py": "tasks, in the layer that runs them",
    "spark_worker/main.py": "kinds of jobs, in the layer that runs them",
    "storage/audit/snapshots.py": "engines with definitions, in the layer of the engines",
    "storage/domain/access/permissions.py": "the actions, which grants name",
    "storage/domain/alerts/kinds.py": "the kinds of alerts, which mutes name",
    "storage/domain/errors/codes.py": "the codes of errors",
    "storage/domain/jobs.py": "the kinds of jobs and their slots, of which some are nouns",
}
"""Files that name four nouns or more at once, each with the reason."""

NOUNS_MAX = 3
WORDS = {word: noun.name for noun in NOUNS for word in (noun.name, noun.plural)}


@cache
def operations() -> dict[str, dict[str, dict[str, list[str]]]]:
    return dict(create_app().openapi()["paths"])


@pytest.mark.parametrize("folder", FOLDERS)
def test_modules_of_nouns_are_those_of_the_folder(folder):
    declared = [name for noun in NOUNS for name in FOLDERS[folder](noun)]
    modules = {module.name for module in pkgutil.iter_modules(import_module(folder).__path__)}

    assert set(declared) == modules - OF_NO_NOUN[folder]


def test_noun_of_the_list_appears_everywhere():
    program = (sys.executable, "-m", "tests.toy_noun")

    printed = subprocess.run(program, cwd=ROOT, check=True, capture_output=True).stdout

    assert json.loads(printed) == {
        "routes": ["/v1/toys/{toy}"],
        "tag": {"name": "toys", "description": "Toys."},
        "pages": ["/ui/toys"],
        "navigation": "toy",
        "commands": ["ls"],
        "hint": "`millstream toy ls` lists existing toys.",
        "name": "top",
        "public": True,
    }


@pytest.mark.parametrize("member", ["name", "plural"])
def test_nouns_have_different_words(member):
    words = [getattr(noun, member) for noun in NOUNS]

    assert len(set(words)) == len(words)


def test_tags_of_operations_are_those_of_nouns():
    tags = {
        tag
        for path in operations().values()
        for operation in path.values()
        for tag in operation["tags"]
    }

    assert tags == {noun.plural for noun in NOUNS if noun.tag}


def test_commands_are_listed_in_the_order_of_nouns():
    words = [noun.name for noun in NOUNS if noun.commands]
    groups = [
        name
        for name, command in command_tree().commands.items()
        if isinstance(command, TyperGroup) and name in words
    ]

    assert groups == words


@pytest.mark.parametrize("code", [code for code in ErrorCode if code.endswith("_not_found")])
def test_hint_of_missing_object_names_an_existing_command(code):
    noun = code.removesuffix("_not_found")
    if noun in {each.name for each in NOUNS if each.commands}:
        [command] = re.findall(r"`millstream (\w+) ls`", HINTS[code])

        group = command_tree().commands[command]
        assert isinstance(group, TyperGroup)
        assert "ls" in group.commands


def test_contract_tests_cover_every_noun_that_is_put():
    nouns = {
        noun.name
        for noun in NOUNS
        if "put" in operations().get(f"/v1/{noun.plural}/{{{noun.name}}}", {})
    }

    assert nouns == set(test_declarative.NOUNS)
    assert nouns <= set(test_conditions.NOUNS)


def test_browser_tests_cover_the_list_of_every_noun():
    assert {noun.page.path for noun in NOUNS if noun.page} <= {page.path for page in PAGES}


# ── Enumerations of nouns elsewhere ──


def nouns_in(node: ast.AST) -> set[str]:
    """Return the nouns that a name, a short text or the first part of a value has in it."""
    match node:
        case ast.Constant(value=str(text)) if len(text) <= 40:
            return words_in(text)
        case ast.Name(id=text):
            return words_in(text)
        case ast.alias(name=text) if text.islower():  # a module
            return words_in(text)
        case ast.Attribute(value=owner, attr=text):
            return nouns_in(owner) | words_in(text)
        case ast.Call(func=function, args=arguments):
            return nouns_in(function).union(*map(nouns_in, arguments[:1]))
        case ast.Tuple(elts=[first, *_]) | ast.List(elts=[first, *_]) | ast.Starred(value=first):
            return nouns_in(first)
        case _:
            return set()


def words_in(text: str) -> set[str]:
    separate = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", text).lower()
    return {WORDS[part] for part in re.split(r"[^a-z]+", separate) if part in WORDS}


def collections_in(tree: ast.Module) -> Iterator[list[ast.AST]]:
    """Yield the members of each collection, import and class that a module has."""
    for node in ast.walk(tree):
        match node:
            case ast.Tuple(elts=members) | ast.List(elts=members) | ast.Set(elts=members):
                yield list(members)
            case ast.Dict(keys=keys):
                yield [key for key in keys if key is not None]
            case ast.ImportFrom(names=names):
                yield list(names)
            case ast.ClassDef(body=body):
                yield [
                    target
                    for part in body
                    if isinstance(part, ast.Assign)
                    for target in part.targets
                ]
            case _:
                pass


def is_enumeration(members: list[ast.AST]) -> bool:
    return len(set().union(*map(nouns_in, members))) > NOUNS_MAX


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("KINDS = ('queue', 'stream', 'group', 'source')", True),
        ("from api.rest.routes import queues, streams, groups, sources", True),
        ("ROUTERS = (queues.router, streams.router, groups.router, sources.router)", True),
        ("GET = {'queues': 1, 'streams': 2, 'groups': 3, 'sources': 4}", True),
        ("PAGES = (('Queues', 1), ('Streams', 2), ('Groups', 3), ('Sources', 4))", True),
        ("KINDS = ('queue', 'stream', 'group')", False),
        ("KINDS = ('queue', 'queues', 'Queue', 'queue:list')", False),
    ],
)
def test_enumeration_has_four_nouns_or_more(text, is_one):
    assert any(map(is_enumeration, collections_in(ast.parse(text)))) is is_one


def test_nouns_are_enumerated_in_one_list():
    """The palette of the dashboard had no sources: it was a seventh list of nouns."""
    files = {
        str(path.relative_to(ROOT))
        for package in ("api", "consumers", "spark_worker", "storage")
        for path in (ROOT / package).rglob("*.py")
        if any(map(is_enumeration, collections_in(ast.parse(path.read_text()))))
    }

    assert files == set(ENUMERATIONS)
