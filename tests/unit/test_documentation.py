"""The pages: links resolve, the index is complete, and blocks are marked."""

import json
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from api.cli.main import app
from api.cli.reference.generator import made_pages
from api.config.settings import Settings
from tests.documentation import (
    DOCS,
    ROOT,
    anchors,
    blocks,
    created_names,
    links,
    name_of,
    pages,
)

UNBOUNDED = re.compile(r"^\s*(?:until .*|while (?:true|True|:|\[).*)$", re.MULTILINE)
KINDS = ("tutorials", "how-to", "reference", "explanation", "internals")
PAGES = pages()
OURS = [page for page in PAGES if "adr" not in page.parts]
each_page = pytest.mark.parametrize("page", PAGES, ids=map(name_of, PAGES))
each_of_ours = pytest.mark.parametrize("page", OURS, ids=map(name_of, OURS))


@each_page
def test_every_link_resolves(page):
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page

        assert target.exists(), f"{link} is not there"
        assert target.is_relative_to(ROOT), f"{link} is outside of the repository"
        if anchor:
            assert anchor in anchors(target), f"{link}: no such heading"


@each_page
def test_page_begins_with_its_title(page):
    assert re.match(r"# \S", page.read_text())


def test_pages_create_resources_of_their_own():
    """Two tutorials created one stream: whoever read both waited in a loop without end."""
    pages_of = defaultdict(set)
    for page in PAGES:
        for resource in created_names(page):
            pages_of[resource].add(name_of(page))

    assert len(pages_of) > 20
    assert {resource: names for resource, names in pages_of.items() if len(names) > 1} == {}


@each_page
def test_loops_of_page_end(page):
    """A step that does not succeed must not spin in a reader's terminal."""
    loops = [
        (block.line, loop)
        for block in blocks(page)
        if block.language in ("sh", "python", "js")
        for loop in UNBOUNDED.findall(block.text)
    ]

    assert loops == []


def test_every_page_is_in_the_index():
    index = {(DOCS / link).resolve() for link in links(DOCS / "README.md")}

    missing = {
        name_of(page)
        for page in DOCS.rglob("*.md")
        if page not in index and page.name != "README.md" and page.parent.name != "adr"
    }
    assert missing == set()


def test_every_page_is_in_the_folder_of_its_kind():
    folders = {page.parent for page in DOCS.rglob("*.md")}

    assert folders == {DOCS, DOCS / "adr", *(DOCS / kind for kind in KINDS)}


def test_pages_named_in_the_repository_exist():
    """Comments, the change log and the READMEs of SDKs name pages by their path."""
    told = [
        *ROOT.glob("*.md"),
        *(ROOT / "deploy").rglob("*.y*ml"),
        *ROOT.glob("openapi/sdk/*/*.md"),
    ]
    for room in ("api", "consumers", "storage", "spark_worker", "pyspark_millstream", "tests"):
        told += [path for path in (ROOT / room).rglob("*.py") if path != Path(__file__)]
    for path in told:
        for named in re.findall(r"\bdocs/[\w/.-]+\.md", path.read_text()):
            assert (ROOT / named).is_file(), f"{name_of(path)} names {named}"


@each_of_ours
def test_every_block_has_a_language(page):
    """A fence without a language, or an indented block, could be anything."""
    assert [block.line for block in blocks(page) if not block.language] == []


@each_of_ours
def test_data_blocks_can_be_parsed(page):
    readers: dict[str, Callable[[str], Any]] = {
        "json": json.loads,
        "toml": tomllib.loads,
        "yaml": lambda text: list(yaml.safe_load_all(text)),
    }
    for block in blocks(page):
        if block.language in readers and not block.why:
            readers[block.language](block.text)


def test_generated_pages_are_current():
    """`make reference` writes them."""
    folder = DOCS / "reference"

    for name, text in made_pages(app).items():
        assert (folder / name).read_text() == text, name


REPOSITORY_PATH = re.compile(
    r"`((?:api|storage|consumers|spark_worker|pyspark_millstream|openapi|tests)/[\w./-]+?)(?:::\w+)?`"
)


def test_pages_name_existing_files():
    pages_ = [*pages(), ROOT / "CONTRIBUTING.md"]
    named = {path for page in pages_ for path in REPOSITORY_PATH.findall(page.read_text())}

    assert sorted(path for path in named if not (ROOT / path).exists()) == []


CITED_MODULE = re.compile(
    r"`((?:api|storage|consumers|spark_worker|pyspark_millstream)(?:\.[a-z_0-9]+)+)(?:\.([A-Z]\w+))?`"
)


def test_pages_name_existing_modules():
    """`storage.log.provisioner` or `storage.log.provisioner.LogProvisioner`, in any page."""
    cited = {match for page in pages() for match in CITED_MODULE.findall(page.read_text())}

    missing = []
    for module, name in sorted(cited):
        path = ROOT / module.replace(".", "/")
        text = path.with_suffix(".py").read_text() if path.with_suffix(".py").exists() else ""
        if not (text or path.is_dir()) or (name and f"class {name}" not in text):
            missing.append(f"{module} {name}")
    assert missing == []


CITED_CLASS = re.compile(r"`([A-Z]\w*[a-z]\w*)(?:\.(\w+))?`")
CITED_FUNCTION = re.compile(r"`(\w+)\(\)`")


@pytest.mark.parametrize(
    "page",
    [page for page in sorted((DOCS / "internals").glob("*.md")) if page.name != "style.md"],
    ids=name_of,
)
def test_internals_cite_existing_code(page):
    """Classes with their members, and functions written with parentheses."""
    text = page.read_text()

    missing = [
        f"{name}.{member}" if member else name
        for name, member in CITED_CLASS.findall(text)
        if name not in defined_classes()
        or (member and not any(member in module for module in defined_classes()[name]))
    ]
    missing += [name for name in CITED_FUNCTION.findall(text) if name not in defined_functions()]
    assert missing == []


CLASS = re.compile(r"^class (\w+)\b", re.MULTILINE)
FUNCTION = re.compile(r"\bdef (\w+)\(")
MEMBER = re.compile(r"^    (?:async )?(?:def )?(\w+)\b", re.MULTILINE)


@cache
def sources() -> list[str]:
    packages = ("api", "consumers", "pyspark_millstream", "spark_worker", "storage")
    return [path.read_text() for name in packages for path in (ROOT / name).rglob("*.py")]


@cache
def defined_classes() -> dict[str, list[set[str]]]:
    """Map the name of each class to the indented words of each module that defines it."""
    modules = defaultdict(list)
    for source in sources():
        if names := CLASS.findall(source):
            members = set(MEMBER.findall(source))
            for name in names:
                modules[name].append(members)
    return dict(modules)


@cache
def defined_functions() -> set[str]:
    return {name for source in sources() for name in FUNCTION.findall(source)}


def test_troubleshooting_quotes_existing_messages():
    """Checks the first table; `…` stands for inserted text."""
    page = (DOCS / "how-to" / "troubleshoot.md").read_text()
    rows = page.partition("## It does not start")[2].partition("## ")[0].splitlines()
    matches = [word for row in rows for word in re.findall(r"`([^`]+)`", row.split(" | ")[0])]
    text = " ".join(
        re.sub(r'"\s*\n\s*f?"', "", path.read_text())
        for room in ("api", "spark_worker", "storage")
        for path in (ROOT / room).rglob("*.py")
    )

    pieces = [
        piece.strip() for word in matches for piece in word.split("…") if len(piece.strip()) > 8
    ]
    assert len(pieces) > 8
    assert [piece for piece in pieces if piece not in text] == []


def test_every_setting_is_described():
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


def test_every_command_and_option_is_described():
    lines = (DOCS / "reference" / "commands.md").read_text().splitlines()

    assert [line for line in lines if line.startswith("| `") and line.endswith("|  |")] == []
