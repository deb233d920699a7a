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


@pytest.fixture(scope="module", params=["websocket", "long polls"])
def steps(compiled, service_url, request):
    """The output of each step of the script, by name; the last is behind a broken network.

    Node 20 has a WebSocket only if it is switched on.
    """
    switch = ["--experimental-websocket"] if request.param == "websocket" else []
    with running_lossy_proxy(service_url) as proxy:
        proxy.lose_every = ANSWERS_LOST
        script = ["exercise.mjs", service_url, f"ts{time.time_ns()}", proxy.url]
        return steps_of(SDK, "node", *switch, "--no-warnings", *script)


def test_queue_sends_and_receives_any_body(steps):
    assert steps["queue"] == {
        "created": [True, False],
        "differs": [True, "already_exists", ["/attempts_max"]],
        "sent": 5,
        "once": True,
        "bodies": ['{"order":7}', "hello", "bytes", "null", "with", "once"],
        "json": {"order": 7},
        "note": [{"source": "web"}, "text/x-note"],
    }


def test_messages_are_settled_together(steps):
    assert steps["settled"] == {
        "late": ["receipt_handle_expired"] * 2,
        "loop": ["once", "with", '{"order":7}'],
        "dead": ["null"],
        "reasons": 1,
        "stats": 5,
    }


def test_messages_not_yielded_are_released_when_loop_ends(steps):
    assert steps["loop"] == {"ready": 2499, "nothing": [], "purged": 2499}


def test_queue_is_changed_paused_listed_and_deleted(steps):
    assert steps["operations"] == {
        "changed": [77, True],
        "applied": [True, True],
        "listed": [[True, True]],
        "gone": "NotFound",
        "consumers": True,
    }


def test_rejection_is_thrown_as_error_of_its_class(steps):
    refused = steps["refused"]

    assert refused["error"] == [True, True, True]
    assert refused["fields"] == ["NotFound", "queue_not_found", 404, False, True]
    assert refused["text"].startswith("NotFound: ")
    assert refused["hasStack"]
    assert refused["call"] == ["queue_not_found", 404]
    assert refused["invalid"] == ["/attempts_max"]
    assert refused["noJson"] == "TypeError"


def test_subscribed_messages_are_settled(steps):
    """Without a WebSocket, there were no subscriptions in Node 20."""
    assert steps["verdicts"] == {
        "json": {"is": "json"},
        "again": ["release", 2],
        "refused": "receipt_handle_expired",
        "dead": [["never", "at line 7"]],
        "left": 2,
    }
    assert steps["nowhere"] == {"code": "queue_not_found", "kind": "NotFound", "aborted": []}


def test_topic_is_published_to_and_explained(steps):
    assert steps["topic"] == {
        "routes": [1, 0, 0],
        "message": [{"id": 1}, "order.created", "c7"],
        "states": [["orders", "waiting"]],
        "failed": ["fax"],
        "unroutable": "unroutable",
        "paused": [True, False],
        "policy": "drop",
        "names": [["orders"], 1],
        "state": "active",
        "messages": 3,
        "duplicates": [False, True],
        "tested": [3, 2, 1, True],
        "job": ["queued", 3, "cancelled", "job_refused"],
    }


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
        "offset": 0,
        "texts": ["a", "after", "other", '{"page":"/"}'],
        "bytes": [255],
        "json": {"page": "/"},
        "latest": ["after", "other"],
        "time": 5,
        "filtered": ["y"],
        "one": [1, 2],
        "read": [3, True, [1, 2]],
        "open": 4,
    }


def test_follow_waits_for_records_until_aborted(steps):
    assert steps["follow"] == {"followed": 5, "coming": {"last": True}}


def test_replay_is_planned_started_and_cancelled(steps):
    assert steps["replay"] == {
        "planned": 6,
        "state": "queued",
        "listed": True,
        "jobs": True,
        "missing": "job_not_found",
        "files": 0,
    }


def test_group_member_commits(steps):
    assert steps["group"] == {
        "all": ["0", "1", "2", "3", "4"],
        "rest": ["3", "4"],
        "batches": [["3", "4"]],
        "lag": 0,
        "members": 0,
    }
    assert steps["reset"] == {"lags": [5, 0], "bookmarks": 1}


def test_members_share_shards(steps):
    assert steps["members"] == {"distinct": 60, "both": True, "lag": 0}


def test_worker_settles_by_outcome_of_handler(steps):
    """In Node 20 the worker died at its start, without a WebSocket."""
    assert steps["worker"] == {
        "seen": 25,
        "most": 3,
        "delays": ["TypeError", "TypeError"],
        "causes": [
            ["TypeError: no page", "TypeError: no page", True],
            ["no such customer", "RangeError: customer 7", True],
        ],
        "left": 0,
    }


def test_worker_extends_leases_and_releases_what_is_stuck(steps):
    assert steps["leases"] == {"slowly": 1, "released": 1}


def test_subscription_is_in_namespace_of_client(steps):
    """A socket has no header for the namespace: it would read the queue of that name elsewhere."""
    assert steps["namespace"] == {"text": "inside", "outside": "queue_not_found"}


def test_former_names_work_for_one_release(steps):
    assert steps["former"] == {"worked": ["worked"]}


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
    assert committed | {Path("defaults.ts"), Path("tables.ts")} == made.keys()
    for path, text in made.items():
        assert (SDK / "src" / path).read_text() == text, f"{path} is out of date"
