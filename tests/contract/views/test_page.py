"""Commands and programs of docs/how-to/views.md, in order."""

import subprocess
import sys

import pytest

from tests.documentation import DOCS, EXAMPLE_URL, blocks

PAGE = DOCS / "how-to" / "views.md"
SHELL = 'set -euo pipefail; curl() { command curl -sS --fail-with-body "$@"; }\n'
PROGRAMS = {"sh": ["bash", "-c"], "python": [sys.executable, "-c"]}


@pytest.mark.usefixtures("view_worker")
def test_guide_page_runs(service_url, name):
    for block in blocks(PAGE):
        if block.language in PROGRAMS:
            text = block.text.replace(EXAMPLE_URL, service_url)
            text = text.replace("page-clicks", f"page-{name}").replace("pageviews", f"views-{name}")
            program = [*PROGRAMS[block.language], (SHELL if block.language == "sh" else "") + text]
            done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
            assert done.returncode == 0, (block.line, done.stdout, done.stderr)
