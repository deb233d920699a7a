"""The programs of docs/how-to/sdks.md: those of one language are one program."""

import os
import subprocess
import sys
from pathlib import Path

from tests.documentation import DOCS, ROOT, blocks
from tests.javascript import compile_typescript

PAGE = DOCS / "how-to" / "sdks.md"
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


def run_page(folder: Path, url: str) -> str:
    """Return the output of the Python program and of the JavaScript program."""
    return "\n".join([*run_python(folder, url), *run_page_javascript(folder, url)])


def program_of(language: str) -> str:
    """Return the blocks of a language as one program."""
    return "\n".join(block.text for block in blocks(PAGE) if block.language == language)


def run_python(folder: Path, url: str) -> list[str]:
    """Run the Python program, whose worker stops when its queue is empty."""
    program = folder / "page.py"
    text = program_of("python").replace("orders.work(", "stop_soon()\norders.work(")
    program.write_text(STOPPING + text)
    return output(sys.executable, program, url=url)


def run_page_javascript(folder: Path, url: str) -> list[str]:
    """Run the JavaScript program in Node without a WebSocket, as Node 20 is."""
    compile_typescript(TYPESCRIPT)
    return run_javascript(program_of("js"), folder, url)


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
