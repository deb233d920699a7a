"""The list of nouns: complete, and the only one."""

import pkgutil
from importlib import import_module

import pytest
from typer.core import TyperGroup

from api.app import create_app
from api.cli.command_tree import command_tree
from api.nouns import NOUNS

FOLDERS = {
    "api.rest.routes": lambda noun: noun.routes,
    "api.admin.pages": lambda noun: noun.pages,
    "api.cli.commands": lambda noun: (
        [group.partition(":")[0] for group in noun.command.groups] if noun.command else []
    ),
}
OF_NO_NOUN = {
    "api.rest.routes": {"metrics"},
    "api.admin.pages": {"_shared", "overview", "search"},
    "api.cli.commands": {"backups", "bench", "documents", "processes"},
}


@pytest.mark.parametrize("folder", FOLDERS)
def test_modules_of_nouns_are_those_of_the_folder(folder):
    declared = [name for noun in NOUNS for name in FOLDERS[folder](noun)]
    modules = {module.name for module in pkgutil.iter_modules(import_module(folder).__path__)}

    assert set(declared) == modules - OF_NO_NOUN[folder]


@pytest.mark.parametrize("member", ["name", "plural"])
def test_nouns_have_different_words(member):
    words = [getattr(noun, member) for noun in NOUNS]

    assert len(set(words)) == len(words)


def test_tags_of_operations_are_those_of_nouns():
    document = create_app().openapi()
    tags = {
        tag for path in document["paths"].values() for item in path.values() for tag in item["tags"]
    }

    assert [tag["name"] for tag in document["tags"]] == [noun.plural for noun in NOUNS if noun.tag]
    assert tags == {tag["name"] for tag in document["tags"]}


def test_commands_are_listed_in_the_order_of_nouns():
    words = [noun.name for noun in NOUNS if noun.command]
    groups = [
        name
        for name, command in command_tree().commands.items()
        if isinstance(command, TyperGroup) and name in words
    ]

    assert groups == words
