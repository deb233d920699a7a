"""The TypeScript SDK, compiled and run in Node.

`exercise.mjs` beside it has the steps.
"""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.contract.sdk.lossy_proxy import running_lossy_proxy
from tests.javascript import compile_typescript, steps_of

ROOT = Path(__file__).parents[3]
SDK = ROOT / "openapi" / "sdk" / "typescript"
ANSWERS_LOST = 9
"""One of so many responses: an append and a subscription lose some, and still make progress."""


@pytest.fixture(scope="module")
def compiled():
    """Compile the SDK as published, in strict mode."""
    compile_typescript(SDK)


@pytest.fixture(scope="module")
def steps(compiled, service_url):
    """The output of each step of the script, by name; the last is behind a broken network."""
    with running_lossy_proxy(service_url) as proxy:
        proxy.lose_every = ANSWERS_LOST
        script = ["exercise.mjs", service_url, f"ts{time.time_ns()}", proxy.url]
        return steps_of(SDK, "node", "--experimental-websocket", "--no-warnings", *script)


def test_calls_return_and_rejections_raise(steps):
    assert steps["calls"] == {"sent": 2, "bodies": [{"order": 7}, "hello"]}
    assert steps["refused"].pop("thrown").startswith("MillstreamError: ")
    assert steps["refused"] == {"code": "queue_not_found", "status": 404}


def test_messages_are_received_and_settled_over_socket(steps):
    assert steps["verdicts"] == {
        "json": {"is": "json"},
        "again": ["release", 2],
        "refused": "receipt_handle_expired",
        "dead": ["never"],
        "left": 2,
    }
    assert steps["nowhere"] == {"code": "queue_not_found", "kind": "MillstreamError"}


def test_source_is_created_tested_and_shown(steps):
    assert steps["source"] == {
        "path": True,
        "event": True,
        "forged": 401,
        "accepted": 1,
        "reasons": ["header_missing"],
    }


def test_records_start_anywhere_and_continue_through_reshard(steps):
    assert steps["records"] == {
        "texts": ["a", "after", "other", '{"page":"/"}'],
        "bytes": [255],
        "json": {"page": "/"},
        "latest": ["after", "other"],
        "time": 5,
        "filtered": ["y"],
    }


def test_group_member_commits(steps):
    assert steps["group"] == {"all": ["0", "1", "2", "3", "4"], "rest": ["3", "4"]}


def test_worker_settles_by_outcome_of_handler(steps):
    assert steps["worker"] == {"seen": 25, "most": 3, "left": 0}


def test_broken_network_neither_loses_nor_duplicates(steps):
    assert steps["broken"] == {"inOrder": True, "number": 200}
    assert "done" in steps


def test_generated_code_is_up_to_date(compiled, tmp_path):
    """When this fails, run `make sdk` and look at the difference."""
    command = [sys.executable, ROOT / "openapi" / "generate.py", "typescript", tmp_path]
    subprocess.run(command, check=True)

    made = {path.relative_to(tmp_path): path.read_text() for path in tmp_path.rglob("*.ts")}
    committed = {
        path.relative_to(SDK / "src") for path in (SDK / "src" / "generated").rglob("*.ts")
    }
    assert committed | {Path("tables.ts")} == made.keys()
    for path, text in made.items():
        assert (SDK / "src" / path).read_text() == text, f"{path} is out of date"
