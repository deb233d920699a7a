"""The glossary's table of components names classes that exist in the files it gives."""

import re

import pytest

from tests.documentation import DOCS, ROOT

GLOSSARY = (DOCS / "reference" / "glossary.md").read_text()
COMPONENTS = re.findall(
    r"^\| `(\w+)` \| [^|]+ \| `([\w/]+\.py)` \|$",
    GLOSSARY.partition("## Components of the code")[2],
    re.MULTILINE,
)


def test_every_row_of_components_is_read():
    rows = GLOSSARY.partition("## Components of the code")[2].count("\n| `")

    assert len(COMPONENTS) == rows >= 40


@pytest.mark.parametrize(("name", "path"), COMPONENTS, ids=[name for name, _ in COMPONENTS])
def test_component_exists_in_its_file(name, path):
    assert re.search(rf"^class {name}\b", (ROOT / path).read_text(), re.MULTILINE)
