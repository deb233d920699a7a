"""The program of the TypeScript SDK's README, run as shown; test_documentation.py runs those of the how-to."""

import re

import pytest

from tests.acceptance.sdk_page import TYPESCRIPT, run_javascript
from tests.javascript import compile_typescript

pytestmark = pytest.mark.xdist_group("documentation")


def test_program_of_typescript_readme_runs(documented, tmp_path):
    """With a queue of its own: pages use its name."""
    compile_typescript(TYPESCRIPT)
    [program] = re.findall(r"```js\n(.*?)```", (TYPESCRIPT / "README.md").read_text(), re.DOTALL)
    own = program.replace("'orders'", "'readme-orders'")

    assert run_javascript(own, tmp_path, documented.url) == ["{ order: 7 }"]
