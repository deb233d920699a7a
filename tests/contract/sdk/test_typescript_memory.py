"""The in-memory service of the TypeScript SDK: one script for it and for the service, and its own abilities.

`contract.mjs` and `memory.mjs` beside the SDK have the steps.
"""

import json
import time
from pathlib import Path

import pytest

from tests.contract.mirrors.conftest import background_process
from tests.documentation import DOCS, blocks
from tests.javascript import compile_typescript, run, steps_of

SDK = Path(__file__).parents[3] / "openapi" / "sdk" / "typescript"
VALIDATION = "validation_failed"


@pytest.fixture(scope="module")
def compiled():
    """Compile the SDK as published."""
    compile_typescript(SDK)


@pytest.fixture(scope="module", params=["service", "memory"])
def steps(compiled, request):
    """The output of each step of the shared script, by name."""
    script = ("node", "--no-warnings", "contract.mjs")
    prefix = f"tc{time.time_ns()}"
    if request.param == "memory":
        return steps_of(SDK, *script, "memory", prefix)
    url, settings = request.getfixturevalue("service")
    with background_process(settings) as router:
        try:
            return steps_of(SDK, *script, url, prefix)
        finally:
            router.kill()


@pytest.fixture(scope="module")
def own(compiled):
    """The output of each step that only the in-memory service has, by name."""
    return steps_of(SDK, "node", "--no-warnings", "memory.mjs")


def test_queue_is_defined(steps):
    assert steps["definitions"] == {
        "same": False,
        "differs": "already_exists",
        "planned": [["/attempts_max", 5], ["/tags/team", None]],
        "changed": [None, {}],
        "paused": [True, True],
        "names": 1,
        "invalid": [
            [VALIDATION, "unknown_field", "/attempt_max"],
            [VALIDATION, "immutable", "/type"],
            [VALIDATION, "not_supported", "/dedup_scope"],
        ],
        "gone": "queue_not_found",
    }


def test_messages_are_sent_and_settled(steps):
    assert steps["messages"] == {
        "once": True,
        "reused": "idempotency_key_reused",
        "shapes": [
            [11, "application/json", {"source": "web"}, 1],
            [4, "", {}, 1],
            [1, "", {}, 1],
            [4, "application/json", {}, 1],
            [4, "text/x-note", {}, 1],
            [4, "", {}, 1],
        ],
        "late": ["message_not_found", "receipt_handle_expired", "message_not_found"],
        "browsed": [[1, "ready", 1], [3, "in_flight", 0], [4, "ready", 0], [5, "in_flight", 0]],
        "letters": [[2, "never"]],
        "settled": {"ready": 2, "in_flight": 2, "dead_lettered": 1, "acknowledged": 1},
        "redriven": 1,
        "purged": 5,
        "unknown": "message_not_found",
    }


def test_requests_get_replies_of_handlers(steps):
    assert steps["requests"] == {
        "value": [{"n": 1}, "application/json"],
        "zero": 0,
        "once": ["second time", 2],
        "nothing": "",
        "byHand": ["a", {"n": "1"}, "a"],
        "late": "reply_taken",
        "plain": ["", steps["requests"]["plain"][1]],
        "counts": {"in_flight": 1, "acknowledged": 5},
    }
    assert "has no replyTo" in steps["requests"]["plain"][1]


def test_time_redelivers_delays_and_expires(steps):
    assert steps["time"] == {
        "hidden": 0,
        "count": 2,
        "expired": "receipt_handle_expired",
        "dead": [["visibility timeout passed 2 times", 0, 2]],
        "before": {"ready": 1, "delayed": 1, "dead_lettered": 1},
        "after": ["later"],
    }


def test_groups_and_priorities_are_in_order(steps):
    assert steps["order"] == {
        "duplicate": True,
        "received": ["a1", "b1"],
        "none": 0,
        "barred": 0,
        "counts": {"ready": 1, "delayed": 1, "in_flight": 1, "deduplicated": 1},
        "priority": ["high", "low"],
        "invalid": [
            [VALIDATION, "required", "/group"],
            [VALIDATION, "not_supported", "/delay_seconds"],
        ],
    }


def test_failures_reach_dead_letters(steps):
    assert steps["work"] == {
        "why": ["hello", "no such customer", 1],
        "counts": {"dead_lettered": 2, "acknowledged": 1},
        "reasons": [["Error: no connection", 1], ["a negative total", 1]],
    }


def test_records_are_appended_and_read(steps):
    assert steps["streams"] == {
        "first": 0,
        "sameShard": True,
        "offsets": [1, 2],
        "once": True,
        "texts": ['{"page":"/"}', "a", "b", "c"],
        "record": ["ann", {"source": "web"}, {"page": "/"}],
        "pushed": ['{"page":"/"}', "a", "b", "c"],
        "shards": [[0, True, "0"], [1, True, "170141183460469231731687303715884105728"]],
        "next": 4,
    }


def test_members_fetch_and_commit(steps):
    assert steps["groups"] == {
        "texts": ["ann", "bea", "cid", "dan"],
        "lag": [4, 0],
        "stale": "stale_generation",
        "again": 4,
        "members": [["one", [0, 1]]],
        "left": 0,
        "unknown": "group_not_found",
    }


def test_topics_route_messages_to_queues(steps):
    assert steps["topics"] == {
        "created": [
            True,
            False,
            1,
            "indexed",
            {"queue": steps["topics"]["created"][4]["queue"], "stream": None}
            | {"topic": None, "url": None},
        ],
        "differs": "already_exists",
        "routes": [1, None, True],
        "message": [{"id": 1}, {"tenant": "t7"}, True, "order.new", "orders", "c7"],
        "rest": ["x", "rest", ""],
        "stored": [{"id": 1}, "order.new", "application/json"],
        "changes": ["/match/subject"],
        "paused": [True, "paused", "waits"],
        "log": [['{"id":1}', "order.new"], ["x", ""], ["waits", "order"]],
        "readOnly": "stream_read_only",
        "names": [["orders", "rest"], 1],
        "missing": ["route_not_found", "topic_not_found"],
    }


def test_message_waits_for_former_revision_of_route(steps):
    assert steps["revisions"] == {"former": ["waits", 1, "waiting"], "deleted": [1, "removed"]}


def test_spread_delivers_each_message_to_one_member(steps):
    assert steps["spread"] == {
        "made": [True, False, "key", [2, 1]],
        "delivered": [True, 40, True],
        "alone": True,
        "member": True,
        "lags": [[True, 0], [True, 0]],
        "refused": [
            "/target/spread",
            "/target/spread/1",
            "/target/spread/1/url",
            "/target/spread/1/weight",
            "/target/by",
        ],
        "cycle": "route_cycle",
    }


def test_routes_match_subjects_and_filters(steps):
    assert steps["matches"] == {
        "filters": [1, 0, 0, 1, 1, 1, 1, 0, 1, 0, 1],
        "subjects": ["00100", "01110", "00110", "00011", "01001", "11111", "10000", "01001"],
        "invalid": [
            ["match_invalid", "/match/subject"],
            ["match_invalid", "/match/subject/1"],
            ["match_invalid", "/match/0/subjects"],
            ["match_invalid", "/match/filter/body/a"],
        ],
    }


def test_routes_deliver_to_any_target(steps):
    assert steps["targets"] == {
        "cycle": "route_cycle",
        "letter": [{"id": "i7"}, "order.a", "fifo", VALIDATION],
        "source": True,
        "fifo": ["2", "c7", ""],
        "copy": [{"id": "i7"}, "order.a", "i7", True],
        "waited": "waits",
        "shadowed": True,
        "dropped": True,
        "refused": "unroutable",
    }


def test_fifo_topics_and_requests_of_topics(steps):
    assert steps["fifo"] == {
        "duplicates": [False, False, True],
        "invalid": [[VALIDATION, "required", "/key"], [VALIDATION, "required", "/dedup_scope"]],
        "replies": ["yes", "yes"],
    }


def test_records_of_streams_are_routed(steps):
    assert steps["streamRoutes"] == {
        "made": [True, 1],
        "copy": [{"even": True, "n": 2}, "k", "", "even", ""],
        "origin": [True, "0", "2"],
        "rest": [{"even": False, "n": 1}, "rest"],
        "shown": [True, True, "standard", "drop", 1_048_576],
        "back": "route_cycle",
        "readOnly": ["topic_read_only"] * 4,
        "names": True,
        "pointers": ["/target/topic", "/target/topic", "/target/queue", "/target/stream"],
        "delivered": True,
        "gone": ["topic_not_found"] * 2,
    }


def test_messages_of_queues_are_routed(steps):
    assert steps["queueRoutes"] == {
        "planned": [True, 1, False],
        "missing": ["topic_not_found", "queue_not_found"],
        "made": [True, 1],
        "copy": [{"even": True, "n": 2}, "g", True, "even"],
        "letter": [True, {"even": False, "n": 1}, "unroutable"],
        "last": [{"even": False, "n": 3}, "g"],
        "paused": [True, {"even": True, "n": 4}],
        "shown": [True, "refuse", 10 * 1024 * 1024, "drop", "refuse"],
        "refused": [
            "topic_read_only",
            [VALIDATION, "not_supported", "/shards"],
            [VALIDATION, "not_supported", "/type"],
        ],
        "cycles": ["route_cycle"] * 2,
        "counts": {"ready": 0, "moved_out": 3, "dead_lettered": 1, "sent": 4},
        "gone": "topic_not_found",
    }


def test_back_tests_evaluate_matches(steps):
    assert steps["backTests"] == {
        "results": [
            [5, matched, None, failed, True]
            for matched, failed in (
                (5, {}),
                (2, {"body.total": 3}),
                (4, {"subject": 1}),
                (2, {"body.total": 3, "subject": 2}),
                (3, {"body.total": 2, "subject": 2}),
                (1, {"subject": 4, "key": 2}),
                (4, {"body.customer.vip": 1}),
                (1, {"body.tags": 4, "key": 3}),
                (0, {"meta.topic": 5, "headers.tenant": 4}),
                (2, {"size": 3}),
                (2, {"routes": 3}),
            )
        ],
        "compared": [0, 1, 1, 1],
        "few": [2, False],
        "late": [0, True],
        "refused": [
            ["match_invalid", "unknown_field", "/match/subjects"],
            [VALIDATION, "out_of_range", "/messages_max"],
            [VALIDATION, "out_of_range", "/samples_max"],
            ["route_not_found"],
        ],
        "same": True,
        "other": "job_refused",
        "cancelled": ["cancelled", "backtest", True, "cancelled", 5, 0, False],
        "retried": "job_refused",
        "unknown": ["job_not_found"] * 2,
    }


def test_answers_have_the_fields_of_their_schemas(steps):
    schemas = json.loads((SDK.parents[1] / "openapi.json").read_text())["components"]["schemas"]
    answers = {name: set(fields) for name, fields in steps["fields"].items() if name != "step"}

    assert len(answers) == 28
    for name, fields in answers.items():
        assert set(schemas[name]["required"]) <= fields <= schemas[name]["properties"].keys(), name


# ── The in-memory service alone ──


def test_stored_messages_are_inspected(own):
    assert own["inspection"] == {
        "json": {"order": 7},
        "headers": {"source": "web"},
        "before": "delayed",
        "letters": ["never"],
    }


def test_messages_of_topics_are_inspected(own):
    not_in_memory = ["ServerFailed", 501, "not_in_memory"]
    assert own["topics"] == {
        "message": [{"id": 1}, "order.new", ["finished", "waiting"]],
        "copy": [{"id": 1}, "order.new", "orders"],
        "dropped": 1,
        "limits": [not_in_memory] * 4,
        "socket": "TypeError",
    }


def test_routes_of_sources_and_jobs_are_inspected(own):
    refused = ["Conflict", 409, "job_refused"]
    assert own["sources"] == {
        "records": [["a", ["finished"]]],
        "letters": [["a", "unroutable"], ["b", "unroutable"]],
        "states": [["done", 1, 1, 0, True]],
        "done": [refused] * 2,
        "failed": ["failed", "Topic 'shop' does not exist.", "queued", ""],
    }


def test_records_expire_when_clock_is_advanced(own):
    assert own["retention"] == {
        "texts": ["a", "b"],
        "positions": [[0, 0]],
        "left": 0,
        "gaps": [2],
    }


def test_failures_and_lost_responses_are_injected(own):
    assert own["failures"] == {
        "refused": ["Unavailable", 503, "storage_unavailable"],
        "limited": ["Limited", 429, "quota_exceeded"],
        "duplicate": True,
        "stored": 1,
        "unknown": ["OutcomeUnknown", 0, ""],
    }


def test_lost_receive_of_fifo_queue_returns_the_same(own):
    assert own["repeated"] == {"text": "hello", "count": 1}


def test_rest_of_the_service_is_not_in_memory(own):
    not_in_memory = ["ServerFailed", 501, "not_in_memory"]
    assert own["limits"] == {
        "move": not_in_memory,
        "source": not_in_memory,
        "parked": not_in_memory,
        "letters": not_in_memory,
        "aborted": "TimeoutError",
    }


def test_javascript_of_page_runs(compiled):
    page = DOCS / "how-to" / "test-programs.md"
    [program] = [block.text for block in blocks(page) if block.language == "js"]

    run(SDK, "node", "--input-type=module", "--eval", program, seconds_max=30)
