"""The programs of docs/how-to/test-programs.md, run as shown."""

from tests.documentation import DOCS, blocks

PAGE = DOCS / "how-to" / "test-programs.md"


def test_python_of_page_runs():
    program = "\n".join(block.text for block in blocks(PAGE) if block.language == "python")

    names: dict[str, object] = {}
    exec(compile(program, str(PAGE), "exec"), names)

    assert names["done"] == [2]
