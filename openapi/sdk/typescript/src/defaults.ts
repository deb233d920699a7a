// Generated from openapi.json by `make sdk`; changes are lost.

/** Configurations whose fields were omitted. */
export const DEFAULTS: Record<string, Record<string, unknown>> = {
  "QueueConfig": {
    "type": "standard",
    "partitions": null,
    "visibility_timeout_seconds": 30.0,
    "delay_seconds": 0,
    "ttl_seconds": null,
    "retention_seconds": 345600.0,
    "dead_letter_retention_seconds": 1209600.0,
    "message_bytes_max": 1048576,
    "attempts_max": 10,
    "receive_wait_seconds": 0,
    "in_flight_max": 10000000,
    "deduplicate_by_content": false,
    "dedup_scope": "queue",
    "dead_letters": null,
    "redrive_allow": {
      "permission": "allow_all",
      "sources": []
    },
    "backoff": null,
    "paused": null,
    "messages_max": null,
    "bytes_max": null,
    "overflow": "reject",
    "on_poison": "skip",
    "group_weights": [],
    "stream_view": false,
    "archive": false,
    "history": false,
    "expires_after_idle_seconds": null,
    "tags": {}
  },
  "StreamConfig": {
    "shards": 1,
    "mode": "provisioned",
    "retention_seconds": 604800.0,
    "retention_bytes": null,
    "retention_records": null,
    "drop_when_read": false,
    "record_bytes_max": 1048576,
    "event_times": "client_prefer",
    "event_time_skew_seconds_max": null,
    "key_index": false,
    "archive": true,
    "archive_lag_seconds": 300.0,
    "hot_retention_seconds": 86400.0,
    "hot_bytes_max": 1073741824,
    "tags": {}
  },
  "GroupConfig": {
    "stream": null,
    "kind": "ordered",
    "start": "earliest",
    "start_time": null,
    "session_timeout_seconds": 30.0,
    "static_timeout_seconds": 300.0,
    "revoke_timeout_seconds": 60.0
  },
  "BackoffConfig": {
    "kind": "exponential",
    "initial_seconds": 1,
    "multiplier": 2,
    "max_seconds": 900,
    "delays_seconds": [],
    "jitter": "full"
  },
  "TopicConfig": {
    "type": "standard",
    "shards": 1,
    "unmatched": null,
    "deduplicate_by_content": false,
    "dedup_scope": "topic",
    "message_bytes_max": 1048576,
    "retention_seconds": 345600.0,
    "retention_bytes": null,
    "archive": false,
    "tags": {}
  },
  "RouteConfig": {
    "match": null,
    "target": {
      "queue": null,
      "stream": null,
      "topic": null,
      "url": null,
      "ordered": null,
      "spread": null,
      "by": null,
      "headers": null,
      "credentials": null,
      "timeout_seconds": null,
      "rate": null,
      "in_flight_max": null,
      "retry_seconds": null,
      "disable_after_seconds": null,
      "log_retention_seconds": null
    },
    "transform": null,
    "format": "body",
    "key": null,
    "delay_seconds": 0,
    "ttl_seconds": 0,
    "on_failure": "wait",
    "dead_letter_queue": null,
    "mode": "live",
    "start": "latest",
    "start_time": null,
    "tags": {}
  }
};
