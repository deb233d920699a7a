"""The layout of the source: folder sizes, and the code map in docs/internals."""

import ast
import re
from pathlib import Path

import pytest

from tests.documentation import DOCS, ROOT

PACKAGES = ("api", "consumers", "spark_worker", "storage", "pyspark_millstream")
MODULES_MAX = 14
CATALOGUES = {  # any number of modules of one shape, none of which imports another
    "actions",
    "commands",
    "pages",
    "repositories",
    "routes",
    "schemas",
    "scripts",
    "tasks",
    "versions",
}
FOLDERS = sorted(
    path.parent for package in PACKAGES for path in (ROOT / package).rglob("__init__.py")
)
each_folder = pytest.mark.parametrize(
    "folder", FOLDERS, ids=lambda folder: str(folder.relative_to(ROOT))
)


def _summary(folder: Path) -> str:
    docstring = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    return docstring.partition("\n\n")[0].replace("\n", " ")


@each_folder
def test_folder_is_one_idea_or_a_catalogue(folder):
    modules = [path.name for path in folder.glob("*.py") if path.name != "__init__.py"]

    assert len(modules) <= MODULES_MAX or folder.name in CATALOGUES


@each_folder
def test_package_has_a_summary(folder):
    assert _summary(folder)


def test_code_map_lists_every_package_with_its_summary():
    page = (DOCS / "internals" / "code-map.md").read_text()
    rows = dict(re.findall(r"^\| `([\w/]+)/` \| (.+) \|$", page, re.MULTILINE))

    assert rows == {str(folder.relative_to(ROOT)): _summary(folder) for folder in FOLDERS}
