"""Texts for readers use plain technical English: a list of phrases that the style guide rules out."""

import ast
import re
from collections.abc import Iterator
from typing import TypeGuard

import pytest

from tests.documentation import DOCS, ROOT, name_of

PHRASES = re.compile(
    r"""
    \b(?:
        anew | not\ any\ more | whoever | told | for\ good | said | for\ ever | goes\ on
        | what\ (?:it|they)\ says? | t(?:akes?|ook)\ (?:it|that|them)\ for | nothing\ twice
        | so\ many(?!\ that\b)
        | (?:is|are)\ there(?=[,.;:)]|$|\ (?:and|or|if|as|again|yet|still)\b)
        | (?:option|setting|field|header|flag)s?\ says?
    )\b
    """,
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
PACKAGES = ("api", "consumers", "pyspark_millstream", "spark_worker", "storage")
CODE_OR_TARGET = re.compile(r"(?<!`)`[^`\n]+`(?!`)|\]\([^)\s]+\)")
TEMPLATE_CODE = re.compile(r"\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
TEMPLATES = sorted((ROOT / "api" / "admin" / "templates").rglob("*.html"))
EXAMPLES = sorted((DOCS / "examples").glob("*.py"))


def _phrases(text: str) -> list[str]:
    return [match.group() for match in PHRASES.finditer(text)]


def _texts(package: str) -> Iterator[tuple[str, str]]:
    """Yield the strings of a package that are not docstrings: help, error details, descriptions."""
    for path in sorted((ROOT / package).rglob("*.py")):
        tree = ast.parse(path.read_text())
        skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        skipped |= {id(node.args[0]) for node in ast.walk(tree) if _is_log_call(node)}
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in skipped
                and " " in node.value
            ):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


def _is_log_call(node: ast.AST) -> TypeGuard[ast.Call]:
    return (
        isinstance(node, ast.Call)
        and bool(node.args)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "logger"
    )


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page_has_no_outdated_phrase(page):
    assert _phrases(CODE_OR_TARGET.sub("", page.read_text())) == []


@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_example_has_no_outdated_phrase(example):
    assert _phrases(example.read_text()) == []


@pytest.mark.parametrize("template", TEMPLATES, ids=name_of)
def test_template_has_no_outdated_phrase(template):
    assert _phrases(TEMPLATE_CODE.sub("", template.read_text())) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_texts_of_package_have_no_outdated_phrase(package):
    assert [(where, words) for where, text in _texts(package) if (words := _phrases(text))] == []
