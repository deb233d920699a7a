"""One example for each operation of the OpenAPI document; a test runs them in this order."""

from typing import Any

import msgspec

_MESSAGE_ID = "1c7e4a90-5b3d-8f21-a6c0-000000000007"
_HANDLE = "lbAxYzdlNGE5MDViM2RmMjFhB88AAAGbbHnEAAHPAAABm2x5xAA"
_AT = "2026-01-31T12:00:00.000Z"
_LATER = "2026-01-31T12:00:30.000Z"
_CURSOR = "kpSmcXVldWVzp2RlZmF1bHSgpm9yZGVycw"


class Example(msgspec.Struct, frozen=True):
    """Request at `path`, and its response.

    `before`: (method, path, body) of the requests it needs first.
    """

    path: str
    request: Any = None
    status: int = 200
    answer: Any = None
    before: tuple[tuple[str, str, Any], ...] = ()


_QUEUE = {
    "name": "orders",
    "type": "standard",
    "visibility_timeout_seconds": 60,
    "delay_seconds": 0,
    "retention_seconds": 345600,
    "dead_letter_retention_seconds": 1209600,
    "message_bytes_max": 1048576,
    "ttl_seconds": None,
    "attempts_max": 10,
    "receive_wait_seconds": 0,
    "in_flight_max": 10000000,
    "deduplicate_by_content": False,
    "dedup_scope": "queue",
    "dead_letters": None,
    "redrive_allow": {"permission": "allow_all", "sources": []},
    "backoff": None,
    "paused": False,
    "messages_max": None,
    "bytes_max": None,
    "overflow": "reject",
    "on_poison": "skip",
    "group_weights": [],
    "stream_view": False,
    "archive": False,
    "history": False,
    "tags": {"team": "shop"},
    "version": 1,
    "created_at": _AT,
    "changed_at": _AT,
}


def _series(**columns: list[float | None]) -> dict[str, Any]:
    return {"start_at": _AT, "step_seconds": 10, "columns": columns}


_NO_RATES = {
    "calls_per_second": None,
    "messages_per_second": None,
    "bytes_per_second": None,
    "burst_seconds": 1,
}
_NAMESPACE = {
    "rates": {**_NO_RATES, "calls_per_second": 1000, "burst_seconds": 2},
    "resources": [
        {"resources": "queue/orders-*", "rates": {**_NO_RATES, "messages_per_second": 500}}
    ],
    "connections_max": None,
    "queues_max": 50,
    "streams_max": None,
    "stored_bytes_max": None,
    "name": "acme",
    "account_id": "310984467205",
    "stored_bytes": None,
    "over_storage_quota": False,
    "version": 1,
    "created_at": _AT,
    "changed_at": _AT,
}
SOCKET_ID = "5b1f9c22e07a4d36"
_PROCESS_ID = "c0a81f6e2d93b574"
JOB_ID = "0b1c2d3e4f5061728394a5b6c7d8e9f0"
_JOB = {
    "id": JOB_ID,
    "kind": "archive",
    "subject": "logs",
    "state": "failed",
    "requested_state": "none",
    "attempt": 10,
    "failures": 10,
    "attempts_max": 10,
    "progress": {"files": 12},
    "failure": "The archive's bucket rejected the request.",
    "created_at": _AT,
    "run_after": _AT,
    "started_at": _AT,
    "ended_at": _LATER,
}
_REPLAY = {
    "id": "again",
    "stream": "clicks",
    "target": {"stream": None, "queue": "web", "shard_mode": "rehash"},
    "order": "key",
    "state": "queued",
    "requested_state": "none",
    "attempt": 0,
    "failure": "",
    "created_at": _AT,
    "started_at": None,
    "ended_at": None,
}
_REPLAY_COUNTS = {
    "read": 5000,
    "selected": 120,
    "sent": 120,
    "duplicates": 0,
    "bytes": 30720,
    "expired": 0,
}
READ_MARK = "kpKlZ3JvdXCvZGVmYXVsdC9yZWFkZXJzk6VhbGljZQeBAAI"
MOVE_ID = "6f1d2c3b4a5968778695a4b3c2d1e0ff"
STAGED_ID = "9a8b7c6d5e4f30211203f4e5d6c7b8a9"
_MOVE = {
    "id": MOVE_ID,
    "source": "orders",
    "destination": "web",
    "per_second": 1,
    "state": "running",
    "moved": 0,
    "to_move": 2,
    "redrive": False,
    "failure": "",
    "started_at": _AT,
}
_PARKED = {
    "group": "customer-7",
    "state": "parked",
    "parked_at": _AT,
    "reason": "disputed",
    "poison_offset": None,
    "messages": 0,
    "first_offset": None,
}
_BROWSED = {
    "id": _MESSAGE_ID,
    "offset": 2,
    "state": "ready",
    "body": "hello",
    "sent_at": _AT,
    "receive_count": 0,
    "failures": 0,
    "crash_count": 0,
}
_STREAM = {
    "name": "clicks",
    "shards": 2,
    "open_shards": 2,
    "mode": "provisioned",
    "retention_seconds": 604800,
    "retention_bytes": None,
    "retention_records": None,
    "drop_when_read": False,
    "record_bytes_max": 1048576,
    "event_times": "client_prefer",
    "event_time_skew_seconds_max": None,
    "key_index": False,
    "archive": True,
    "archive_lag_seconds": 300,
    "hot_retention_seconds": 86400,
    "hot_bytes_max": 1073741824,
    "tags": {},
    "version": 1,
    "created_at": _AT,
    "changed_at": _AT,
}
_ARCHIVED_FILE = {
    "id": "5b4c3d2e1f00f1e2d3c4b5a69788796a",
    "shard": 0,
    "first_offset": 0,
    "next_offset": 40000,
    "records": 40000,
    "file_bytes": 7000000,
    "record_bytes": 10240000,
    "first_arrival": _AT,
    "last_arrival": _LATER,
    "path": "default/9c3e/v1/dt=2026-01-31/hr=12/shard=000000000000/"
    "00000000000000000000-00000000000000040000-a1b2c3d4.parquet",
}
_STATS = {
    "ready": 1,
    "delayed": 0,
    "in_flight": 0,
    "dead_lettered": 0,
    "sent": 2,
    "deduplicated": 0,
    "acknowledged": 1,
    "expired": 0,
    "purged": 0,
    "receive_count": 1,
    "bytes_sent": 24,
    "moving": 0,
    "moved_in": 0,
    "moved_out": 0,
    "parked": 0,
    "dropped": 0,
    "bytes_held": 37,
    "oldest_ready_at": _AT,
    "durability": "always",
}
_RECEIVED = {
    "id": _MESSAGE_ID,
    "body": {"order": 7},
    "content_type": "application/json",
    "headers": {"source": "web"},
    "receipt_handle": _HANDLE,
    "offset": 7,
    "sent_at": _AT,
    "first_received_at": _AT,
    "visible_at": _LATER,
    "receive_count": 1,
    "failures": 0,
    "crash_count": 0,
}
_DEAD = {
    "id": _MESSAGE_ID,
    "body": "hello",
    "offset": 7,
    "reason": "not an order",
    "sent_at": _AT,
    "died_at": _LATER,
    "receive_count": 1,
    "failures": 0,
    "crash_count": 0,
}
_RECORD = {"offset": 0, "data": {"page": "/"}, "key": "user-1", "arrival_time": _AT}
_SHARD = {
    "index": 0,
    "open": True,
    "parents": [],
    "opened_at": _AT,
    "closed_at": None,
    "first_hash_key": "0",
    "last_hash_key": "170141183460469231731687303715884105727",
    "start": 0,
    "next": 2,
    "bytes": 64,
    "fenced": False,
}
_CHILD = {
    **_SHARD,
    "index": 2,
    "parents": [0],
    "last_hash_key": "85070591730234615865843651857942052863",
    "next": 0,
    "bytes": 0,
}
_GROUP = {
    "name": "readers",
    "stream": "clicks",
    "kind": "ordered",
    "start": "earliest",
    "start_time": None,
    "session_timeout_seconds": 30,
    "static_timeout_seconds": 300,
    "revoke_timeout_seconds": 60,
    "version": 1,
    "created_at": _AT,
    "changed_at": _AT,
}
_GROUP_DETAIL = {
    **_GROUP,
    "generation": 1769860800002,
    "members": [
        {
            "member": "alice",
            "static": False,
            "disconnected": False,
            "joined_at": _AT,
            "heartbeat_at": _LATER,
            "assigned": [0, 1],
            "revoked": [],
        }
    ],
    "shards": [{"shard": 0, "member": "alice", "committed": 2, "finished": False}],
}
_MEMBERSHIP = {
    "member": "bob",
    "generation": 1769860800004,
    "assigned": [{"shard": 1, "committed": None}],
    "revoked": [],
    "heartbeat_seconds": 5,
}
_BOOKMARK = {"name": "before-deploy", "positions": {"0": 2, "1": 0}, "created_at": _AT}
_SHARD_LAG = {
    "shard": 0,
    "member": "alice",
    "committed": 2,
    "position": 2,
    "start": 0,
    "tip": 5,
    "records": 3,
    "expired": 0,
    "lag_seconds": 4.2,
    "loss_in_seconds": 604795.8,
    "finished": False,
}

_HOOK_HEALTH: dict[str, Any] = {
    "state": "active",
    "disabled_reason": None,
    "disabled_at": None,
    "failing_since": None,
    "last_success_at": _LATER,
    "last_failure_at": None,
    "last_failure": "",
    "delivered": 7,
    "failed": 0,
    "blocked": [],
}
_HOOK = {
    "name": "shop",
    "source": "queue:orders",
    "url": "https://shop.example/hooks/orders",
    "header_names": ["authorization"],
    "format": "body",
    "timeout_seconds": 1,
    "rate": None,
    "in_flight_max": 10,
    "retry_seconds": [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400],
    "on_failure": "block",
    "dead_letter_queue": None,
    "disable_after_seconds": 432000,
    "log_retention_seconds": 259200,
    "enabled": True,
    "version": 1,
    "created_at": _AT,
    "changed_at": _AT,
    "health": _HOOK_HEALTH,
}
_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="  # noqa: S105  an example
_ATTEMPT = {
    "at": _AT,
    "outcome": "server_error",
    "status": 500,
    "duration_seconds": 0.25,
    "error": "500",
    "response": "no room",
    "resent": False,
}
_DELIVERY = {
    "id": _MESSAGE_ID,
    "status": "retrying",
    "attempts": 1,
    "last_attempts": [_ATTEMPT],
    "first_at": _AT,
    "last_at": _AT,
    "next_at": _LATER,
    "sent_at": _AT,
    "shard": None,
    "offset": 7,
}

KEY_ID = "0123456789AB"
API_KEY = "msk_0123456789AB_0123456789abcdefghijklmnopqrstuv2xeBay"
_GRANT = {"effect": "allow", "actions": ["queue:send"], "resources": ["orders-*"]}
_RATES = {
    "calls_per_second": 100,
    "messages_per_second": None,
    "bytes_per_second": None,
    "burst_seconds": 1,
}
_KEY = {
    "id": KEY_ID,
    "kind": "key",
    "name": "shop",
    "namespace": "default",
    "all_namespaces": False,
    "roles": ["viewer"],
    "grants": [_GRANT],
    "rates": None,
    "family": KEY_ID,
    "version": 1,
    "created_by": "local-administrator",
    "created_at": _AT,
    "changed_at": _AT,
    "expires_at": None,
    "last_used_at": None,
    "revoked_at": None,
}
EXAMPLES: dict[str, Example] = {
    "put_queue": Example(
        "/v1/queues/orders",
        {"visibility_timeout_seconds": 60, "tags": {"team": "shop"}},
        201,
        _QUEUE,
    ),
    "get_queue": Example("/v1/queues/orders", answer=_QUEUE),
    "change_queue": Example(
        "/v1/queues/orders",
        {"attempts_max": 3},
        200,
        {**_QUEUE, "attempts_max": 3, "version": 2, "changed_at": _LATER},
    ),
    "list_queues": Example("/v1/queues?limit=10", answer={"items": [_QUEUE], "next_cursor": None}),
    "send_messages": Example(
        "/v1/queues/orders/messages",
        {"messages": [{"body": {"order": 7}, "headers": {"source": "web"}}, {"body": "hello"}]},
        201,
        {
            "messages": [
                {"id": _MESSAGE_ID, "offset": 7, "duplicate": False},
                {"id": _MESSAGE_ID[:-1] + "8", "offset": 8, "duplicate": False},
            ]
        },
    ),
    "receive_messages": Example(
        "/v1/queues/orders/receive",
        {"messages_max": 10, "wait_seconds": 1},
        200,
        {"messages": [_RECEIVED]},
    ),
    "settle_messages": Example(
        "/v1/queues/orders/settle",
        {"settlements": [{"receipt_handle": _HANDLE, "action": "ack"}]},
        200,
        {
            "results": [
                {
                    "status": "error",
                    "error": {
                        "code": "receipt_handle_invalid",
                        "detail": "The receipt handle was not issued by this queue.",
                        "retryable": False,
                    },
                }
            ]
        },
    ),
    "browse_messages": Example(
        "/v1/queues/orders/messages?state=ready&limit=10",
        answer={"items": [_BROWSED], "next_cursor": None},
    ),
    "get_message": Example(
        "/v1/queues/orders/messages/2",
        answer=_BROWSED,
        before=(("POST", "/v1/queues/orders/messages", {"body": "hello"}),),
    ),
    "get_message_history": Example(
        "/v1/queues/orders/messages/0/history",
        answer={
            "id": "0",
            "offset": 0,
            "state": "in_flight",
            "truncated": False,
            "events": [
                {"type": "sent", "at": _AT, "until": None, "number": None, "reason": ""},
                {"type": "delivered", "at": _AT, "until": _LATER, "number": 1, "reason": ""},
            ],
        },
    ),
    "change_message": Example(
        "/v1/queues/orders/messages/2",
        {"body": "hello again", "delay_seconds": 30},
        answer={**_BROWSED, "state": "delayed", "due_at": _LATER},
    ),
    "delete_message": Example("/v1/queues/orders/messages/2", status=204),
    "get_queue_stats": Example("/v1/queues/orders/stats", answer=_STATS),
    "get_queue_series": Example(
        "/v1/queues/orders/series?window_seconds=20",
        answer=_series(
            ready=[3, 4],
            ready_max=[3, 4],
            oldest_age_seconds=[12.5, 22.5],
            sent_per_second=[0, 0.1],
        ),
    ),
    "get_namespace_series": Example(
        "/v1/series?window_seconds=20",
        answer=_series(queues=[2, 2], ready=[7, 9], messages_in_per_second=[1.5, 2.1]),
    ),
    "list_dead_letters": Example(
        "/v1/queues/orders/dead-letters?limit=10", answer={"items": [_DEAD], "next_cursor": None}
    ),
    "list_death_reasons": Example(
        "/v1/queues/orders/dead-letters/reasons",
        answer={
            "items": [
                {
                    "reason": "no such customer",
                    "count": 3,
                    "first_died_at": _AT,
                    "last_died_at": _LATER,
                }
            ]
        },
    ),
    "redrive_queue": Example(
        "/v1/queues/orders/redrives", {"reason": "no such customer"}, answer={"redriven": 3}
    ),
    "list_parked_groups": Example(
        "/v1/queues/orders/groups?state=parked",
        answer={"items": [_PARKED], "next_cursor": None},
        before=(("PUT", "/v1/queues/orders/groups/customer-7/pause", {"reason": "disputed"}),),
    ),
    "pause_group": Example(
        "/v1/queues/orders/groups/customer-8/pause", {"reason": "disputed"}, 204
    ),
    "resume_group": Example("/v1/queues/orders/groups/customer-8/pause", answer={"resumed": 0}),
    "start_move": Example(
        "/v1/queues/orders/moves",
        {"destination": "web", "per_second": 1},
        202,
        _MOVE,
        before=(
            ("PUT", "/v1/queues/web", {"dead_letters": {"queue": "orders", "receives_max": 3}}),
            ("POST", "/v1/queues/orders/messages", {"messages": [{"body": 1}, {"body": 2}]}),
        ),
    ),
    "list_moves": Example("/v1/queues/orders/moves", answer={"items": [_MOVE]}),
    "get_move": Example(f"/v1/queues/orders/moves/{MOVE_ID}", answer=_MOVE),
    "change_move": Example(
        f"/v1/queues/orders/moves/{MOVE_ID}",
        {"state": "cancelled"},
        answer={**_MOVE, "state": "cancelling"},
    ),
    "put_webhook": Example(
        "/v1/webhooks/shop",
        {
            "source": "queue:orders",
            "url": "https://shop.example/hooks/orders",
            "headers": {"authorization": "Bearer 7"},
            "timeout_seconds": 1,
        },
        201,
        {**_HOOK, "secret": _SECRET},
    ),
    "get_webhook": Example("/v1/webhooks/shop", answer=_HOOK),
    "list_webhooks": Example(
        "/v1/webhooks?prefix=sh", answer={"items": [_HOOK], "next_cursor": None}
    ),
    "rotate_webhook_secret": Example(
        "/v1/webhooks/shop/secret",
        {"overlap_seconds": 86400},
        answer={"secret": _SECRET, "created_at": _AT, "old_secret_expires_at": _LATER},
    ),
    "enable_webhook": Example("/v1/webhooks/shop/enable", answer={**_HOOK, "version": 3}),
    "test_webhook": Example(
        "/v1/webhooks/shop/tests",
        answer={
            **_ATTEMPT,
            "outcome": "connection",
            "status": None,
            "error": "no connection: 'shop.example' cannot be resolved",
            "response": "",
        },
    ),
    "list_deliveries": Example(
        "/v1/webhooks/shop/deliveries?status=retrying",
        answer={"items": [_DELIVERY], "next_cursor": None},
    ),
    "resend_delivery": Example(
        f"/v1/webhooks/shop/deliveries/{_MESSAGE_ID}/resends",
        answer={**_ATTEMPT, "outcome": "delivered", "status": 204, "error": "", "resent": True},
    ),
    "delete_webhook": Example("/v1/webhooks/shop", status=204),
    "purge_queue": Example("/v1/queues/orders/purges", answer={"purged": 2}),
    "delete_queue": Example("/v1/queues/orders", status=204),
    "put_stream": Example("/v1/streams/clicks", {"shards": 2}, 201, _STREAM),
    "get_stream_series": Example(
        "/v1/streams/clicks/series?window_seconds=20",
        answer=_series(records=[90, 100], records_in_per_second=[0.5, 1], lag_records=[None, None]),
    ),
    "get_stream": Example("/v1/streams/clicks", answer=_STREAM),
    "change_stream": Example(
        "/v1/streams/clicks",
        {"retention_seconds": 86400},
        200,
        {**_STREAM, "retention_seconds": 86400, "version": 2, "changed_at": _LATER},
    ),
    "list_streams": Example(
        "/v1/streams?prefix=cl", answer={"items": [_STREAM], "next_cursor": None}
    ),
    "append_records": Example(
        "/v1/streams/clicks/records",
        {"records": [{"data": {"page": "/"}, "key": "user-1"}]},
        200,
        {"records": [{"shard": 0, "offset": 0, "duplicate": False}], "failed": 0},
    ),
    "append_columns": Example(
        "/v1/streams/clicks/columns",
        {"data": ["b25l", "dHdv"], "keys": ["user-7", "user-7"]},
        answer={"ranges": [{"shard": 0, "offset": 3}], "failed": 0},
    ),
    "append_records_to_shard": Example(
        "/v1/streams/clicks/shards/0/records",
        {
            "records": [{"data": "hello", "key": "user-1"}],
            "producer": {"id": "importer", "epoch": 0, "sequence": 0},
        },
        200,
        {"records": [{"shard": 0, "offset": 1, "duplicate": False}], "failed": 0},
    ),
    "list_shards": Example("/v1/streams/clicks/shards", answer={"items": [_SHARD]}),
    "read_table": Example("/v1/streams/clicks/shards/0/table?offset=0&bytes_max=1000000"),
    "read_shard": Example(
        "/v1/streams/clicks/shards/0/records?offset=0&limit=100",
        answer={
            "records": [_RECORD],
            "next_offset": 1,
            "start": 0,
            "tip": 2,
            "behind_seconds": 0.5,
            "tier": "hot",
            "ended": False,
        },
    ),
    "read_stream": Example(
        "/v1/streams/clicks/records?from=earliest",
        answer={
            "records": [{"shard": 0, **_RECORD}],
            "next_cursor": _CURSOR,
            "behind_seconds": 0,
            "tier": "hot",
            "gaps": [],
        },
    ),
    "read_events": Example("/v1/streams/clicks/events?follow=false"),
    "read_shard_events": Example("/v1/streams/clicks/shards/0/events?follow=false&limit=10"),
    "put_consumer_group": Example("/v1/groups/readers", {"stream": "clicks"}, 201, _GROUP),
    "list_consumer_groups": Example(
        "/v1/groups?prefix=re", answer={"items": [_GROUP], "next_cursor": None}
    ),
    "fetch_records": Example(
        "/v1/groups/readers/records?member=alice&wait_seconds=1",
        answer={
            "records": [{"shard": 0, **_RECORD}],
            "member": "alice",
            "generation": 1769860800002,
            "shards": [0, 1],
            "token": READ_MARK,
            "behind_seconds": 0,
            "tier": "hot",
            "gaps": [],
        },
    ),
    "commit_offsets": Example(
        "/v1/groups/readers/commit",
        {"token": READ_MARK},
        answer={"offsets": [{"shard": 0, "offset": 2}], "failed": 0},
    ),
    "get_consumer_group": Example("/v1/groups/readers", answer=_GROUP_DETAIL),
    "get_group_series": Example(
        "/v1/groups/readers/series?window_seconds=20",
        answer=_series(lag_records=[None, 12], lag_seconds=[None, 0.8], members=[None, 1]),
    ),
    "get_group_lag": Example(
        "/v1/groups/readers/lag",
        answer={
            "records": 3,
            "lag_seconds": 4.2,
            "loss_in_seconds": 604795.8,
            "shards": [_SHARD_LAG],
        },
    ),
    "put_bookmark": Example("/v1/groups/readers/bookmarks/before-deploy", {}, answer=_BOOKMARK),
    "list_bookmarks": Example("/v1/groups/readers/bookmarks", answer={"items": [_BOOKMARK]}),
    "reset_group": Example(
        "/v1/groups/readers/reset",
        {"to": "bookmark", "bookmark": "before-deploy", "dry_run": True},
        answer={
            "dry_run": True,
            "shards": [{"shard": 0, "before": 5, "after": 2, "expired": 0}],
        },
    ),
    "delete_bookmark": Example("/v1/groups/readers/bookmarks/before-deploy", status=204),
    "join_group": Example(
        "/v1/groups/readers/members",
        {"member": "bob"},
        answer={**_MEMBERSHIP, "session_timeout_seconds": 30},
    ),
    "send_heartbeat": Example(
        "/v1/groups/readers/members/bob/heartbeat", {"owned": [1]}, answer=_MEMBERSHIP
    ),
    "leave_group": Example("/v1/groups/readers/members/bob", status=204),
    "delete_consumer_group": Example("/v1/groups/readers", status=204),
    "get_latest_record": Example(
        "/v1/streams/clicks/keys/user-1",
        answer={"shard": 0, **_RECORD, "content_type": "application/json"},
        before=(
            ("PATCH", "/v1/streams/clicks", {"key_index": True}),
            (
                "POST",
                "/v1/streams/clicks/records",
                {"records": [{"data": {"page": "/"}, "key": "user-1"}]},
            ),
        ),
    ),
    "stage_records": Example("/v1/streams/clicks/staged", status=201, answer={"id": STAGED_ID}),
    "discard_staged": Example(f"/v1/streams/clicks/staged/{STAGED_ID}", status=204),
    "commit_staged": Example(
        "/v1/streams/clicks/commits",
        {"writer_id": "hourly-load", "batch_id": 7, "staged": []},
        answer={"done": True, "records": 0, "staged": []},
    ),
    "get_archive": Example(
        "/v1/archives/clicks",
        answer={
            "stream": "clicks",
            "archiving": True,
            "shards": [
                {
                    "shard": 0,
                    "archive_start_offset": 0,
                    "archived_offset": 120000,
                    "archived_at": _LATER,
                    "hot_start_offset": 60000,
                    "next_offset": 120500,
                    "waiting_records": 500,
                    "waiting_bytes": 128000,
                    "waiting_seconds": 41.5,
                    "files": 3,
                    "records": 120000,
                    "file_bytes": 21000000,
                    "record_bytes": 30720000,
                }
            ],
        },
    ),
    "list_archived_files": Example(
        "/v1/archives/clicks/files?shard=0",
        answer={"items": [_ARCHIVED_FILE], "next_cursor": None},
    ),
    "flush_archive": Example(
        "/v1/archives/clicks/flushes",
        status=202,
        answer={"job": "0f1e2d3c4b5a69788796a5b4c3d2e1f0"},
    ),
    "truncate_shard": Example(
        "/v1/streams/clicks/shards/0/truncate", {"before": 1}, answer={"shard": 0, "start": 1}
    ),
    "put_fence": Example(
        "/v1/streams/clicks/shards/1/fence",
        {"token": "writer-7"},
        answer={"shard": 1, "fenced": True},
    ),
    "reshard_stream": Example(
        "/v1/streams/clicks/reshard",
        {"split": {"shard": 0}},
        answer={"items": [{**_SHARD, "open": False, "closed_at": _LATER}, _CHILD]},
    ),
    "start_replay": Example(
        "/v1/replays",
        {
            "id": "again",
            "stream": "clicks",
            "target": {"queue": "web"},
            "from": {"time": _AT},
            "filter": {"body": [{"path": "/page", "equals": "/cart"}]},
            "order": "key",
            "pacing": {"records_per_second": 500},
        },
        status=202,
        answer=_REPLAY,
        before=(("PUT", "/v1/queues/web", {}),),
    ),
    "list_replays": Example(
        "/v1/replays?limit=1", answer={"items": [_REPLAY], "next_cursor": None}
    ),
    "get_replay": Example(
        "/v1/replays/again",
        answer={
            **_REPLAY,
            "state": "running",
            "request": {
                "stream": "clicks",
                "target": {"queue": "web", "shard_mode": "rehash"},
                "from": {"time": _AT},
                "to": None,
                "filter": {"body": [{"path": "/page", "equals": "/cart"}]},
                "order": "key",
                "pacing": {"records_per_second": 500},
            },
            "progress": {**_REPLAY_COUNTS, "records": 10000, "parts": 1, "parts_done": 0},
            "shards": [
                {
                    **_REPLAY_COUNTS,
                    "shard": 0,
                    "first": 0,
                    "end": 10000,
                    "position": 5000,
                    "done": False,
                }
            ],
        },
    ),
    "pause_replay": Example("/v1/replays/again/pause", answer={**_REPLAY, "state": "paused"}),
    "resume_replay": Example("/v1/replays/again/resume", answer=_REPLAY),
    "retry_replay": Example("/v1/replays/again/retry", answer=_REPLAY),
    "cancel_replay": Example(
        "/v1/replays/again/cancel", answer={**_REPLAY, "state": "cancelled", "ended_at": _LATER}
    ),
    "delete_stream": Example("/v1/streams/clicks", status=204),
    "list_jobs": Example(
        "/v1/jobs?kind=archive&limit=10", answer={"items": [_JOB], "next_cursor": None}
    ),
    "get_job": Example(
        f"/v1/jobs/{JOB_ID}",
        answer={
            **_JOB,
            "parts": [{"part": "0", "position": 5000, "done": False, "counts": {"records": 5000}}],
        },
    ),
    "retry_job": Example(
        f"/v1/jobs/{JOB_ID}/retry",
        answer={**_JOB, "state": "queued", "failures": 0, "failure": "", "ended_at": None},
    ),
    "cancel_job": Example(f"/v1/jobs/{JOB_ID}/cancel", answer={**_JOB, "state": "cancelled"}),
    "put_namespace": Example(
        "/v1/namespaces/acme",
        {
            "rates": {"calls_per_second": 1000, "burst_seconds": 2},
            "resources": [{"resources": "queue/orders-*", "rates": {"messages_per_second": 500}}],
            "queues_max": 50,
        },
        status=201,
        answer=_NAMESPACE,
    ),
    "get_namespace": Example("/v1/namespaces/acme", answer=_NAMESPACE),
    "list_namespaces": Example(
        "/v1/namespaces?prefix=a", answer={"items": [_NAMESPACE], "next_cursor": None}
    ),
    "delete_namespace": Example("/v1/namespaces/acme", status=204),
    "create_key": Example(
        "/v1/keys",
        {"name": "shop", "roles": ["viewer"], "grants": [_GRANT]},
        201,
        {**_KEY, "secret": API_KEY},
    ),
    "get_key": Example(f"/v1/keys/{KEY_ID}", answer=_KEY),
    "list_keys": Example("/v1/keys?name=shop", answer={"items": [_KEY], "next_cursor": None}),
    "change_key": Example(
        f"/v1/keys/{KEY_ID}",
        {"rates": {"calls_per_second": 100}},
        answer={**_KEY, "rates": _RATES, "version": 2, "changed_at": _LATER},
    ),
    "rotate_key": Example(
        f"/v1/keys/{KEY_ID}/rotations",
        {"overlap_seconds": 3600},
        201,
        {**_KEY, "id": "ba9876543210", "rates": _RATES, "secret": API_KEY},
    ),
    "log_in": Example(
        "/v1/sessions",
        {"api_key": API_KEY},
        201,
        {"name": "shop", "namespace": "default", "expires_at": _LATER},
    ),
    "log_out": Example("/v1/sessions", status=204),
    "make_ticket": Example(
        "/v1/tickets",
        status=201,
        answer={
            "ticket": "mst_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGxxxxxx",
            "expires_at": _LATER,
        },
    ),
    "whoami": Example(
        "/v1/whoami",
        answer={
            "name": "shop",
            "namespace": "default",
            "all_namespaces": False,
            "credential": KEY_ID,
            "grants": [_GRANT],
            "rates": _RATES,
            "expires_at": None,
        },
    ),
    "revoke_key": Example(f"/v1/keys/{KEY_ID}", status=204),
    "list_audit_entries": Example(
        "/v1/audit?resource=queues/orders&limit=1",
        answer={
            "items": [
                {
                    "seq": 1,
                    "called_at": _AT,
                    "namespace": "default",
                    "principal": "local-administrator",
                    "credential": "",
                    "authenticated": "open",
                    "address": "127.0.0.1",
                    "protocol": "rest",
                    "operation": "change_queue",
                    "action": "queue:manage",
                    "resource": "queues/orders",
                    "request_id": "5f3a9c0e12ab00000001",
                    "outcome": "done",
                    "before": {"visibility_timeout_ms": 30000},
                    "after": {"visibility_timeout_ms": 60000},
                    "prev_hash": "0" * 64,
                    "hash": "6a1f" * 16,
                }
            ],
            "next_cursor": None,
            "complete": False,
        },
    ),
    "list_processes": Example(
        "/v1/processes",
        answer={
            "items": [
                {
                    "id": _PROCESS_ID,
                    "role": "api",
                    "host": "mill-1",
                    "pid": 4711,
                    "version": "0.1.0",
                    "started_at": _AT,
                    "seen_at": _LATER,
                    "event_loop_lag_seconds": 0.001,
                    "sockets": 1,
                    "sessions": 1,
                }
            ]
        },
    ),
    "list_sockets": Example(
        "/v1/sockets",
        answer={
            "items": [
                {
                    "id": SOCKET_ID,
                    "process": _PROCESS_ID,
                    "principal": "shop",
                    "address": "192.0.2.7",
                    "protocol": "millstream.v1.json",
                    "connected_at": _AT,
                    "queued_bytes": 512,
                    "subscriptions": [
                        {
                            "name": "orders",
                            "source": "queue:orders",
                            "mode": "work",
                            "group": None,
                            "credit_messages": 98,
                            "credit_bytes": 1048064,
                        }
                    ],
                }
            ],
            "next_cursor": None,
        },
    ),
    "close_socket": Example(f"/v1/sockets/{SOCKET_ID}", status=204),
    "check_live": Example("/livez", answer={"status": "ok"}),
    "check_ready": Example(
        "/readyz",
        answer={"status": "ok", "checks": {"redis": "ok", "postgres": "ok", "migrations": "ok"}},
    ),
}
