"""The programs of docs/how-to/sdks.md, run as shown."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.javascript import compile_typescript

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "sdks.md").read_text()
TYPESCRIPT = ROOT / "openapi" / "sdk" / "typescript"
STOPPING = """
import os, signal, threading, time
from millstream_client import Millstream

def stop_when_all_is_done():
    stats = Millstream().queue("sdk-orders").stats
    while stats().acknowledged < 3 or stats().dead_lettered < 1:
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGTERM)

def stop_soon():
    threading.Thread(target=stop_when_all_is_done).start()

"""
"""Stop the worker of the page once its queue is empty."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def output(*command: str | Path, url: str) -> list[str]:
    done = subprocess.run(
        command,
        env={**os.environ, "MILLSTREAM_URL": url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_python_of_page_runs(millstream, tmp_path):
    program = tmp_path / "page.py"
    text = "\n".join(blocks("python")).replace("orders.work(", "stop_soon()\norders.work(")
    program.write_text(STOPPING + text)

    printed_output = output(sys.executable, program, url=millstream.url)

    assert printed_output[0] == """application/json b'{"id":1,"total":12.5}' 1"""
    assert "3" in printed_output
    assert "['/', '/cart', '/paid']" in printed_output
    assert "queue_not_found 404" in printed_output
    assert '{"page":"/paid"}' in printed_output
    assert "hello" in printed_output
    assert "ok" in printed_output
    assert printed_output[-2:] == ["shipped 1", "['a negative total']"]


def test_javascript_of_page_runs(millstream, tmp_path):
    """In Node without a WebSocket, as Node 20 is."""
    compile_typescript(TYPESCRIPT)

    printed_output = run_javascript("\n".join(blocks("js")), tmp_path, millstream.url)

    assert "sdk-parcels true" in printed_output
    assert "[ '/', '/cart', '/paid' ]" in printed_output
    assert "queue_not_found 404" in printed_output
    assert "sent 7" in printed_output
    assert printed_output[-1] == "ok"


def test_program_of_typescript_readme_runs(millstream, tmp_path):
    compile_typescript(TYPESCRIPT)
    [program] = re.findall(r"```js\n(.*?)```", (TYPESCRIPT / "README.md").read_text(), re.DOTALL)

    assert run_javascript(program, tmp_path, millstream.url) == ["{ order: 7 }"]


def run_javascript(text: str, folder: Path, url: str) -> list[str]:
    """Run a program in Node, with its imports at the top; return the lines of its output."""
    lines = text.splitlines()
    lines.sort(key=lambda line: not line.startswith("import "))
    program = folder / "page.mjs"
    program.write_text(
        "\n".join(lines)
        .replace("'millstream-client'", f"'{TYPESCRIPT}/dist/index.js'")
        .replace("'millstream-client/calls'", f"'{TYPESCRIPT}/dist/generated/index.js'")
    )
    return output("node", "--no-warnings", program, url=url)
